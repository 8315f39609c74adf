// blend: the mean of two predictors that err differently, `trees` and `ets`, op by op. Forerun's best on traces as the
// authors of ETS take them.
//
// Trees hold to a roofline and place each op by its figures; the network sees twelve ops at a time and interpolates
// smoothly. Where they differ, the truth tends to lie between. Settings: `share`, that of ets in GPU times, and
// `gap_share`, that in gaps (unless set: the same); what begins with `trees.` or `ets.` is for that member ("ets.nets"
// = "3"). A folder of weights names its members' folders, relative to itself, so that weights that are there anyway are
// not kept twice. The log of a training is that of ets.
#pragma once

#include <string>
#include <vector>

#include "lab/dataset/predictor.h"
#include "lab/learn/ets/ets_predictor.h"
#include "lab/trees/trees_predictor.h"

namespace forerun::learn {

// What counts of the second of two predictors.
struct BlendShares {
  double times = 0.5;
  double gaps = 0.5;
};

class BlendPredictor : public Predictor {
 public:
  [[nodiscard]] Settings settings() const override;
  Result<TrainingLog> train(const DataSet& data, const TrainOptions& options) override;
  std::vector<Prediction> predict(const DataSet& data, const Selection& examples) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  BlendShares shares_;
  TreesPredictor trees_;
  EtsPredictor ets_;
};

// The shares of b and the rest of a, op by op; both predict the same examples. Where one of them does not tell GPU time from
// gaps, iterations go by the share of times.
std::vector<Prediction> mean_of(const std::vector<Prediction>& a, const std::vector<Prediction>& b, BlendShares shares);

}  // namespace forerun::learn
