// blend: the mean of two predictors that err differently, `trees` and `ets`, op by op. Forerun's best on traces as the
// authors of ETS take them.
//
// Trees hold to a roofline and place each op by its figures; the network sees twelve ops at a time and interpolates
// smoothly. Where they differ, the truth tends to lie between. Settings: `share`, that of ets; what begins with `trees.` or
// `ets.` is for that member ("ets.nets" = "3"). A folder of weights names its members' folders, relative to itself, so that
// weights that are there anyway are not kept twice. The log of a training is that of ets.
#pragma once

#include <string>
#include <vector>

#include "learn/ets/ets_predictor.h"
#include "learn/predictor.h"
#include "learn/trees/trees_predictor.h"

namespace forerun::learn {

class BlendPredictor : public Predictor {
 public:
  [[nodiscard]] Settings settings() const override;
  Result<TrainingLog> train(const DataSet& data, const TrainOptions& options) override;
  std::vector<Prediction> predict(const DataSet& data, const Selection& examples) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  double share_ = 0.5;
  TreesPredictor trees_;
  EtsPredictor ets_;
};

// `share` of b and the rest of a, op by op; both predict the same examples.
std::vector<Prediction> mean_of(const std::vector<Prediction>& a, const std::vector<Prediction>& b, double share);

}  // namespace forerun::learn
