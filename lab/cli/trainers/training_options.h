// The options of training that predictors share, as the command line has them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lab/dataset/predictor.h"

namespace forerun::cli {

struct TrainingWords {
  learn::TrainOptions options;
  std::vector<std::string> settings;  // "cell=gru"
  std::optional<double> seconds, minutes;
};

// Seed, validation and settings, which every predictor takes.
void add_predictor_options(CLI::App& app, TrainingWords& words);
// Epochs and what belongs to them.
void add_epoch_options(CLI::App& app, TrainingWords& words);

// The options, or an Error for what cannot be meant: a setting given twice, no epochs.
Result<learn::TrainOptions> training_options(const TrainingWords& words);

}  // namespace forerun::cli
