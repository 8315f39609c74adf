// One training of one predictor: train, save the weights with their card, look at the test split. What `forerun train`
// and `forerun-train` (the program of the preset `train`) both do.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/dataset/metrics.h"
#include "lab/learn/predictors.h"

namespace forerun::learn {

inline constexpr const char* kMetaLearned = "ets";  // the predictor that learns across GPUs (TrainOptions::meta)

struct TrainingRequest {
  std::string predictor;
  std::string out;  // folder for the weights; empty: they are not kept
  TrainOptions options;
};

struct TrainingOutcome {
  std::string data;  // DataSet::source
  Division division = {};
  TrainingLog log;
  std::vector<Evaluation> test;  // of the test split, each quantity that is predicted and was measured; for the record
  double predict_seconds = 0;    // for all of the test split
};

// An Error where an option cannot be meant: no epochs, a learning rate that is not above 0.
Status check_options(const TrainOptions& options);

// What is meta-learned is not validated: its last weights count.
Result<TrainingOutcome> train_and_save(const TrainingRequest& request, const DataSet& data);

// The errors of a predictor on some examples: each quantity that it predicts and that was measured.
std::vector<Evaluation> evaluate_all(const DataSet& data, const Selection& examples,
                                     std::span<const Prediction> predictions);

// Lines for a terminal: "epoch 3 of 100: loss 0.12, validation MRE 8.1 % (best), 12 s".
std::string to_text(const EpochReport& report);
std::string to_text(const TrainingOutcome& outcome);
// One JSON object.
std::string to_json(const TrainingRequest& request, const TrainingOutcome& outcome);
nlohmann::ordered_json to_json(const Evaluation& evaluation);

}  // namespace forerun::learn
