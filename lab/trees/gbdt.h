// gbdt: a baseline of the DNNPerf paper: one gradient-boosted model (XGBoost) over what a whole iteration adds up to, for
// its time and one for its memory. Columns: numbers of ops by name; FLOPs and bytes by phase and by class; batch, input
// size, parameters, precision, optimizer. Learned are logarithms. The paper does not list its columns; these are what
// tells most without the order of ops.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/trees/forest.h"
#include "lab/dataset/features.h"
#include "lab/dataset/metrics.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

class GbdtPredictor : public Predictor {
 public:
  [[nodiscard]] Settings settings() const override;
  Result<TrainingLog> train(const DataSet& data, const TrainOptions& options) override;
  std::vector<Prediction> predict(const DataSet& data, const Selection& examples) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  Status set_options(const Settings& settings);
  Status fit(const DataSet& data, const Selection& examples, uint64_t seed);
  [[nodiscard]] std::vector<float> columns_of(const DataSet& data, const Example& example) const;

  int64_t rounds_ = 300;
  int64_t depth_ = 6;
  OpVocabulary vocabulary_;
  std::optional<Forest> time_;    // ln ms
  std::optional<Forest> memory_;  // ln bytes
};

}  // namespace forerun::learn
