// "What do the papers' predictors say of this run?": learned predictors asked about one training iteration, each with its own
// weights, beside what Forerun says.
//
// A predictor that users name is one folder of weights or two, one for time and one for memory (data/weights/h200). Those weights
// know one GPU alone; a run on another is refused. Habitat and NeuSight are for other GPUs (data/weights/other-gpus).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/ask/other_gpu_ask.h"
#include "lab/dataset/metrics.h"
#include "lab/dataset/predictor.h"
#include "lab/learn/predictors.h"
#include "predict/cost_models.h"

namespace forerun {

// Names that can be asked: "ets", "dnnperf", ...
const std::vector<std::string>& askable_predictors();

struct LearnedAnswer {
  std::string predictor;  // as it was asked for
  learn::Prediction prediction;
  std::string based_on;            // what it started from; empty: the run alone
  std::vector<std::string> notes;  // what it cannot tell
};

// One predictor with its weights, ready to be asked.
class LearnedPredictor {
 public:
  // `weights`: a folder that `forerun train` wrote; empty: those that come with Forerun.
  static Result<LearnedPredictor> load(const std::string& name, const std::string& weights = "");

  [[nodiscard]] const std::string& name() const { return name_; }
  // What the weights were trained on, and what they were pre-trained on.
  [[nodiscard]] const std::vector<std::string>& trained_on() const { return trained_on_; }
  // How far it was from what was measured, on families that it was not trained on: mean relative errors by quantity, from
  // data/evaluations. Nothing of weights that nobody judged.
  [[nodiscard]] const std::map<learn::Target, double>& judged() const { return judged_; }

  // An Error where the run is on a GPU that the weights do not know. `origin`: what its ops were measured to take, for one that
  // carries times over; null: Forerun's predictions.
  Result<LearnedAnswer> ask(const TrainingRun& run, const CostModels& cost_models, const OriginTimes* origin = nullptr);

 private:
  std::string name_;
  std::vector<std::string> trained_on_;
  std::map<learn::Target, double> judged_;
  std::vector<learn::LoadedPredictor> parts_;
  std::shared_ptr<learn::OtherGpuPredictor> other_gpu_;  // in place of parts
};

}  // namespace forerun
