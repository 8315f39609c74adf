// The learned predictors by name: one list (predictors.cpp) for `forerun train`, `forerun eval` and `forerun-train`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

struct PredictorEntry {
  std::string_view name;     // "ets"
  std::string_view summary;  // a sentence
  std::unique_ptr<Predictor> (*make)();
  bool in_epochs = true;  // it is trained epoch by epoch; false: trees, grown at once
};

const std::vector<PredictorEntry>& predictors();
// An Error that lists the names there are.
Result<std::unique_ptr<Predictor>> make_predictor(std::string_view name);

// A folder of weights: the predictor's own files and `card.json`, which says what it is, what it was trained on and how
// well it did on the validation groups.
Status save_weights(const std::string& folder, std::string_view name, const Predictor& predictor, const DataSet& data,
                    const TrainOptions& options, const TrainingLog& log);
// An Error where the weights of `folder` have seen measured examples that were divided otherwise: what is trained from them must not
// be judged by this division.
Status check_start(const std::string& folder, const Division& division);
// How a training went: what the table of convergence shows.
struct Training {
  int64_t epochs = 0;  // 0: not told
  int64_t best_epoch = 0;
  double seconds = 0;
  double validation_error = 0;
};
struct LoadedPredictor {
  std::string name;
  std::string trained_on;  // DataSet::source
  std::unique_ptr<Predictor> predictor;
  Training training = {};
  Training pretraining = {};  // what it was started from
  std::string pretrained_on;  // DataSet::source of that; empty: it was not
  Division division = {};     // of what it was trained on
};
Result<LoadedPredictor> load_weights(const std::string& folder);

}  // namespace forerun::learn
