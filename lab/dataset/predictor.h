// Predictor: what every learned predictor can do. One folder each below learn/; the list is in predictors.cpp.
//
// A predictor learns from the training examples of a DataSet (Split::train; it sets aside whole groups of them to
// validate on and never looks at the others), predicts examples of any DataSet, and is saved as a folder: `card.json`
// (what it is, what it was trained on, how well it validated), `weights.pt` or what else it needs. A folder loads
// without training. This header needs no LibTorch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/dataset/dataset.h"

namespace forerun::learn {

// Settings of a predictor by name ("cell" = "gru", "layers" = "2"), for ablations. Each predictor says which it knows
// (Predictor::settings); a name it does not know is the user's fault.
using Settings = std::map<std::string, std::string>;

struct EpochReport {
  int64_t epoch = 0;  // from 1
  int64_t epochs = 0;
  double training_loss = 0;
  double validation_error = 0;  // MRE, of what the predictor is about
  bool best = false;            // so far
  double seconds = 0;           // since training began, over all resumed parts
};

// Meta-learning across GPUs (lab/learn/meta_learner.h). The defaults of tasks and steps are those of ETS's paper.
struct MetaOptions {
  int64_t tasks = 8;         // episodes of an outer step, each of one GPU
  int64_t support = 10;      // traces that an inner loop learns from; as many others are what it is judged on
  int64_t inner_steps = 5;   // of an episode
  double inner_rate = 1e-3;  // learning rate of those
};

struct TrainOptions {
  uint64_t seed = 1;
  std::optional<int64_t> epochs;        // nothing: the predictor's own
  std::optional<int64_t> batch;         // nothing: the predictor's own
  std::optional<double> learning_rate;  // nothing: the predictor's own
  int64_t patience = 0;                 // epochs without a better validation error before it stops; 0: all epochs
  double validation = 0.15;  // share of training examples to validate on, whole groups; 0: the last weights count
  std::vector<std::string> validate_on;  // groups that begin so are set aside in place of a share
  double seconds = 0;                    // stops after the epoch that passes this; 0: no limit
  std::string start;            // folder of weights to go on from, which keep their settings; empty: from the beginning
  std::string device = "auto";  // "cpu", "cuda", or "auto": CUDA where there is one
  std::string checkpoint;       // folder for a checkpoint after each epoch; empty: none
  bool resume = false;          // go on from the checkpoint, where there is one
  std::string curve;            // CSV file of the epochs; empty: none
  Settings settings;
  std::optional<MetaOptions>
      meta;  // learn a start for GPUs that are not among the data, in place of what fits all that are
  std::function<void(const EpochReport&)> progress;
};

struct TrainingLog {
  std::vector<EpochReport> epochs;
  int64_t best_epoch = 0;
  double best_validation_error = 0;
  double seconds = 0;
  std::string device;
};

// The training examples as two, as the options ask for.
inline Fold fold_for(const DataSet& data, const TrainOptions& options) {
  if (!options.validate_on.empty()) return split_by_groups(data, options.validate_on);
  return split_for_validation(data, options.validation, options.seed);
}

// What a predictor says about an iteration; nothing where it does not predict that.
struct Prediction {
  std::optional<double> iteration_ms;
  std::optional<double> gpu_busy_ms;
  std::optional<double> peak_bytes;
  std::vector<float> op_us;   // by op of the example; empty: not predicted
  std::vector<float> gap_us;  // by op; empty: not predicted
};

class Predictor {
 public:
  Predictor() = default;
  virtual ~Predictor() = default;
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  // The settings it knows with their values: what `train` was given, else defaults.
  [[nodiscard]] virtual Settings settings() const = 0;
  // Forgets what it learned before, but for the weights that the options start from.
  virtual Result<TrainingLog> train(const DataSet& data, const TrainOptions& options) = 0;
  // In the order of `examples`. It must have been trained or loaded.
  virtual std::vector<Prediction> predict(const DataSet& data, const Selection& examples) = 0;
  // Writes its files into the folder, which exists; the card is not its business (lab/learn/predictors.h).
  [[nodiscard]] virtual Status save(const std::string& folder) const = 0;
  virtual Status load(const std::string& folder) = 0;
};

}  // namespace forerun::learn
