#include "lab/cli/trainers/training_options.h"

#include <fmt/format.h>

#include <tuple>

#include "lab/learn/training_session.h"

namespace forerun::cli {
namespace {

Status read_settings(const std::vector<std::string>& texts, learn::Settings& settings) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Error{"'" + text + "' is no setting", "--set", "write NAME=VALUE, such as cell=gru"};
    }
    if (!settings.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return Error{"'" + text.substr(0, equals) + "' is set twice", "--set", "give each setting once"};
    }
  }
  return {};
}

}  // namespace

void add_predictor_options(CLI::App& app, TrainingWords& words) {
  learn::TrainOptions& options = words.options;
  app.add_option("--validation", options.validation, "Share of the training data to validate on, whole families");
  app.add_option("--validate-on", options.validate_on, "Validate on families that begin so, in place of a share");
  app.add_option("--seed", options.seed, "Seed of weights, order and validation families");
  app.add_option("--set", words.settings, "A setting of the predictor: NAME=VALUE");
}

void add_epoch_options(CLI::App& app, TrainingWords& words) {
  learn::TrainOptions& options = words.options;
  app.add_option("--epochs", options.epochs, "Number of epochs, in place of the predictor's own");
  app.add_option("--batch", options.batch, "Samples of a step, in place of the predictor's own");
  app.add_option("--rate", options.learning_rate, "Learning rate, in place of the predictor's own");
  app.add_option("--patience", options.patience, "Stop after so many epochs without a better validation error");
  CLI::Option* seconds = app.add_option("--seconds", words.seconds, "Stop after the epoch that passes so many seconds");
  app.add_option("--minutes", words.minutes, "Stop after the epoch that passes so many minutes")->excludes(seconds);
  app.add_option("--device", options.device, "cpu, cuda or auto");
  app.add_option("--checkpoint", options.checkpoint, "Folder for a checkpoint after each epoch");
  app.add_flag("--resume", options.resume, "Go on from the checkpoint, where there is one");
  app.add_option("--curve", options.curve, "CSV file for the learning curve");
}

Result<learn::TrainOptions> training_options(const TrainingWords& words) {
  learn::TrainOptions options = words.options;
  if (const Status status = read_settings(words.settings, options.settings); !status) return status.error();
  for (const auto& [name, given, unit] :
       {std::tuple("--seconds", words.seconds, 1), {"--minutes", words.minutes, 60}}) {
    if (!given) continue;
    if (!(*given > 0)) return Error{fmt::format("{} cannot be {}", name, *given), name, "give a number above 0"};
    options.seconds = unit * *given;
  }
  if (const Status status = learn::check_options(options); !status) return status.error();
  return options;
}

}  // namespace forerun::cli
