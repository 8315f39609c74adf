// forerun train: trains a learned predictor on a suite's training split and keeps its weights.
#include <fmt/format.h>

#include "api/data_files.h"
#include "api/suites.h"
#include "api/train_hybrid.h"
#include "base/data_dir.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "learn/training_session.h"

namespace forerun::cli {
namespace {

constexpr const char* kHybrid = "hybrid";

struct Options {
  learn::TrainingRequest request;
  std::string suite = "h200";
  SuiteOptions data;
  std::string write_cache;
  std::vector<std::string> settings;
  int64_t epochs = 0;
  int64_t batch = 0;
  double rate = 0;
  double minutes = 0;
  std::vector<std::string> without;
  bool json = false;
};

int list() {
  fmt::print("{:<14} {}\n", kHybrid, "trees over measured ops, which `forerun predict` asks; needs XGBoost");
  if (learn::predictors().empty()) {
    fmt::print(stderr, "forerun: {}\n", learn::make_predictor("").error().message());
    return kDone;
  }
  for (const learn::PredictorEntry& entry : learn::predictors()) fmt::print("{:<14} {}\n", entry.name, entry.summary);
  return kDone;
}

// Trees over measured ops, where the other predictors are networks over iterations.
int train_trees(const Options& options) {
  std::vector<std::string> paths = options.data.records;
  if (paths.empty()) {
    const auto folder = data_dir();
    if (!folder) return fail(folder.error());
    paths.push_back((*folder / "h200").string());
  }
  const auto files = record_files(paths);
  if (!files) return fail(files.error());
  HybridRequest request;
  request.files = *files;
  request.without = {options.without.begin(), options.without.end()};
  request.out = options.request.out;
  request.growth.seed = static_cast<int>(options.request.options.seed);
  request.problem = [](const DataProblem& problem) { fmt::print(stderr, "forerun: {}\n", problem.error().message()); };
  request.progress = [](std::string_view what, size_t done, size_t of) {
    fmt::print(stderr, "{:2} of {} forests: {}\n", done, of, what);
  };
  const auto outcome = train_hybrid(request);
  if (!outcome) return fail(outcome.error());
  if (options.json) {
    fmt::print("{{\"file\":\"{}\",\"ops\":{},\"samples\":{},\"trees\":{},\"bytes\":{},\"seconds\":{:.1f}}}\n",
               outcome->file, outcome->ops, outcome->samples, outcome->trees, outcome->bytes, outcome->seconds);
  } else {
    fmt::print("{}: {} trees, {:.1f} MB, from {} ops of iterations and {} op samples in {:.0f} s\n", outcome->file,
               outcome->trees, static_cast<double>(outcome->bytes) / 1e6, outcome->ops, outcome->samples,
               outcome->seconds);
  }
  return kDone;
}

int train(Options options) {
  if (options.request.predictor == kHybrid) return train_trees(options);
  learn::TrainingRequest& request = options.request;
  if (request.predictor.empty() && options.write_cache.empty()) return list();
  for (const std::string& setting : options.settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      return fail({"'" + setting + "' is no setting", "--set", "write NAME=VALUE, such as cell=gru"});
    }
    request.options.settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  if (options.epochs > 0) request.options.epochs = options.epochs;
  if (options.batch > 0) request.options.batch = options.batch;
  if (options.minutes > 0) request.options.seconds = 60 * options.minutes;
  if (options.rate > 0) request.options.learning_rate = options.rate;
  if (!request.predictor.empty()) {
    if (const auto known = learn::make_predictor(request.predictor); !known) {
      Error error = known.error();
      if (edit_distance(request.predictor, kHybrid) <= 2) error.remedy = did_you_mean(request.predictor, {kHybrid});
      return fail(error);
    }
  }

  options.data.problem = [](const DataProblem& problem) {
    fmt::print(stderr, "forerun: {}\n", problem.error().message());
  };
  const auto data = load_suite(options.suite, options.data);
  if (!data) return fail(data.error());
  fmt::print(stderr, "{}: {} iterations, {} distinct ops\n", data->source, data->examples().size(),
             data->rows().size());
  if (!options.write_cache.empty()) {
    if (const Status status = data->save(options.write_cache); !status.ok()) return fail(status.error());
    if (request.predictor.empty()) return kDone;
  }
  request.options.progress = [](const learn::EpochReport& report) {
    fmt::print(stderr, "{}\n", learn::to_text(report));
  };
  const auto outcome = learn::train_and_save(request, *data);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", options.json ? learn::to_json(request, *outcome) + "\n" : learn::to_text(*outcome));
  return kDone;
}

}  // namespace

void add_train(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("train", "Train a learned predictor; without a name: which there are");
  verb->add_option("NAME", options->request.predictor, "The predictor: hybrid, ets, dnnperf-time, ...");
  verb->add_option("--suite", options->suite, "What to train on: ets-t4, ets-2080ti or h200 (default)");
  verb->add_option("--traces", options->data.traces, "Folder of the ETS authors' traces");
  verb->add_option("--data", options->data.records, "Record files or folders, in place of the data folder's");
  verb->add_option("--cache", options->data.cache, "A data set that --write-cache wrote, in place of all those");
  verb->add_option("--write-cache", options->write_cache, "Write the data set as one file; without NAME: only that");
  verb->add_option("--most", options->data.most_a_group, "Of ETS traces, at most so many of a model");
  verb->add_option("--out", options->request.out, "Folder for the weights; without it they are not kept");
  learn::TrainOptions& training = options->request.options;
  verb->add_option("--epochs", options->epochs, "Epochs, where the predictor's own are not wanted");
  verb->add_option("--batch", options->batch, "Samples a step, where the predictor's own are not wanted");
  verb->add_option("--rate", options->rate, "Learning rate, where the predictor's own is not wanted");
  verb->add_option("--patience", training.patience, "Stop after so many epochs without a better validation error");
  verb->add_option("--validation", training.validation, "Share of the training data to validate on, whole families");
  verb->add_option("--seconds", training.seconds, "Stop after the epoch that passes this");
  verb->add_option("--minutes", options->minutes, "The same in minutes");
  verb->add_option("--seed", training.seed, "Seed of weights, order and validation families");
  verb->add_option("--device", training.device, "cpu, cuda or auto");
  verb->add_option("--checkpoint", training.checkpoint, "Folder for a checkpoint after each epoch");
  verb->add_flag("--resume", training.resume, "Go on from the checkpoint, where there is one");
  verb->add_option("--curve", training.curve, "CSV file for the learning curve");
  verb->add_option("--set", options->settings, "A setting of the predictor: cell=gru, layers=2, ...");
  verb->add_option("--without", options->without, "hybrid: families to leave out, to validate on");
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->footer(
      "Examples:\n"
      "  forerun train                                        the predictors there are\n"
      "  forerun train hybrid                                 the trees of `forerun predict`, from data/h200\n"
      "  forerun train ets --suite ets-t4 --out data/weights/ets-t4/ets\n"
      "  forerun train ets --suite ets-t4 --set cell=gru --epochs 20 --most 4\n"
      "  forerun train --suite ets-t4 --write-cache ets_t4.bin      for forerun-train on a machine with a GPU");
  verb->callback([options, &chosen] { chosen = [options] { return train(*options); }; });
}

}  // namespace forerun::cli
