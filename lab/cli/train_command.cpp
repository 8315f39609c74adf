// forerun train: trains a learned predictor on a suite's training split and keeps its weights.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "lab/cli/lab_verbs.h"
#include "lab/cli/train_parts.h"
#include "lab/eval/driple_suite.h"
#include "lab/eval/suites.h"
#include "lab/learn/training_session.h"

namespace forerun::cli {
namespace {

struct TrainOptions {
  learn::TrainingRequest request;
  std::string suite = "h200";
  SuiteOptions data;
  std::string write_cache;
  std::vector<std::string> settings;
  std::optional<double> seconds, minutes;
  std::vector<std::string> without;
  int folds = 0;
  std::string resource_setting = kBaseResourceSetting;
  std::string study;
  int64_t pretrain = 0;
  bool json = false;
  std::vector<std::string> given;  // options, by name
};

int list() {
  for (const PartEntry& part : trained_parts()) fmt::print("{:<14} {}\n", part.name, part.summary);
  fmt::print("{:<14} {}\n", "driple", "graph network over groups of ops: bursts and idles of GPU and network");
  if (learn::predictors().empty()) {
    fmt::print(stderr, "forerun: {}\n", learn::make_predictor("").error().message());
    return kDone;
  }
  for (const learn::PredictorEntry& entry : learn::predictors()) fmt::print("{:<14} {}\n", entry.name, entry.summary);
  return kDone;
}

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const PartEntry& part : trained_parts()) names.emplace_back(part.name);
  return names;
}

// Driple has data of its own: what forerun.testbed measured.
int train_resources(const TrainOptions& options) {
  DripleTraining request{.setting = options.resource_setting,
                         .data = {.records = options.data.records, .simulated = options.pretrain, .problem = {}},
                         .cache = options.data.cache,
                         .recipe = {.options = options.request.options},
                         .out = options.request.out,
                         .study = options.study,
                         .folds = options.folds};
  request.data.problem = [](const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); };
  request.recipe.options.progress = [](const learn::EpochReport& report) {
    if (report.epoch % 10 == 0) fmt::print(stderr, "{}\n", learn::to_text(report));
  };
  if (!options.write_cache.empty()) {
    const auto written = write_driple_cache(request.data, options.write_cache);
    if (!written) return fail(written.error());
    fmt::print(stderr, "{}\n", *written);
    return kDone;
  }
  const auto outcome = train_driple(request);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", options.json ? to_json(*outcome) + "\n" : to_text(*outcome));
  return kDone;
}

// Options that training a learned predictor would pass over.
Status check_train_options(const TrainOptions& options) {
  std::vector<std::string> read = {"--data",    "--cache",      "--write-cache", "--out",      "--epochs",
                                   "--batch",   "--rate",       "--seed",        "--patience", "--seconds",
                                   "--minutes", "--validation", "--validate-on", "--device",   "--checkpoint",
                                   "--resume",  "--curve",      "--set",         "--json"};
  if (options.request.predictor == "driple") {
    read.insert(read.end(), {"--folds", "--setting", "--pretrain", "--study"});
    return check_given(options.given, read, "forerun train driple");
  }
  read.insert(read.end(), {"--suite", "--traces", "--most"});
  return check_given(options.given, read, "forerun train " + options.request.predictor);
}

Status read_predictor_settings(const std::vector<std::string>& texts, learn::Settings& settings) {
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

Status read_time_limit(TrainOptions& options) {
  for (const auto& [name, given, unit] :
       {std::tuple("--seconds", options.seconds, 1), {"--minutes", options.minutes, 60}}) {
    if (!given) continue;
    if (!(*given > 0)) return Error{fmt::format("{} cannot be {}", name, *given), name, "give a number above 0"};
    options.request.options.seconds = unit * *given;
  }
  return {};
}

int train(TrainOptions options) {
  const std::vector<std::string> parts = part_names();
  if (std::find(parts.begin(), parts.end(), options.request.predictor) != parts.end()) {
    const Status status = check_given(options.given, options_of_part(options.request.predictor),
                                      "forerun train " + options.request.predictor);
    if (!status) return fail(status.error());
    return train_part({.name = options.request.predictor,
                       .records = options.data.records,
                       .without = options.without,
                       .out = options.request.out,
                       .folds = options.folds,
                       .seed = static_cast<int64_t>(options.request.options.seed),
                       .json = options.json});
  }
  learn::TrainingRequest& request = options.request;
  if (request.predictor.empty() && options.write_cache.empty()) return list();
  if (const Status status = read_predictor_settings(options.settings, request.options.settings); !status) {
    return fail(status.error());
  }
  if (const Status status = check_train_options(options); !status) return fail(status.error());
  if (const Status status = read_time_limit(options); !status) return fail(status.error());
  if (const Status status = learn::check_options(request.options); !status) return fail(status.error());
  if (request.predictor == "driple") return train_resources(options);
  if (!request.predictor.empty()) {
    if (const auto known = learn::make_predictor(request.predictor); !known) {
      Error error = known.error();
      std::vector<std::string> others = parts;
      others.emplace_back("driple");
      for (const std::string& part : others) {
        if (edit_distance(request.predictor, part) <= 2) error.remedy = did_you_mean(request.predictor, {part});
      }
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
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "Train a learned predictor; without a name: which there are");
  verb->add_option(
      "NAME", options->request.predictor,
      "The predictor: ets, dnnperf-time, ..., or a part of `forerun predict`: hybrid, host, intervals, devices");
  verb->add_option("--suite", options->suite, "What to train on: ets-t4, ets-2080ti or h200 (default)");
  verb->add_option("--traces", options->data.traces, "Folder of the ETS authors' traces");
  verb->add_option("--data", options->data.records, "Record files or folders, in place of the data folder's");
  verb->add_option("--cache", options->data.cache, "A data set that --write-cache wrote, in place of all those");
  verb->add_option("--write-cache", options->write_cache, "Write the data set as one file; without NAME: only that");
  verb->add_option("--most", options->data.most_a_group, "Of ETS traces, at most so many of a model")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  verb->add_option(
      "--out", options->request.out,
      "Folder for the weights; without it they are not kept. Of a part: its file, in place of the data folder's");
  learn::TrainOptions& training = options->request.options;
  verb->add_option("--epochs", training.epochs, "Epochs, where the predictor's own are not wanted");
  verb->add_option("--batch", training.batch, "Samples a step, where the predictor's own are not wanted");
  verb->add_option("--rate", training.learning_rate, "Learning rate, where the predictor's own is not wanted");
  verb->add_option("--patience", training.patience, "Stop after so many epochs without a better validation error");
  verb->add_option("--validation", training.validation, "Share of the training data to validate on, whole families");
  verb->add_option("--validate-on", training.validate_on, "Validate on families that begin so, in place of a share");
  CLI::Option* seconds = verb->add_option("--seconds", options->seconds, "Stop after the epoch that passes this");
  verb->add_option("--minutes", options->minutes, "The same in minutes")->excludes(seconds);
  verb->add_option("--seed", training.seed, "Seed of weights, order and validation families");
  verb->add_option("--device", training.device, "cpu, cuda or auto");
  verb->add_option("--checkpoint", training.checkpoint, "Folder for a checkpoint after each epoch");
  verb->add_flag("--resume", training.resume, "Go on from the checkpoint, where there is one");
  verb->add_option("--curve", training.curve, "CSV file for the learning curve");
  verb->add_option("--set", options->settings, "A setting of the predictor: cell=gru, layers=2, ...");
  verb->add_option("--without", options->without, "hybrid, host: families to leave out, to validate on");
  verb->add_option("--folds", options->folds, "intervals, driple: leave families out in so many groups")
      ->check(CLI::Range(1, 99));
  verb->add_option("--setting", options->resource_setting, "driple: servers, workers and network, such as P1w2-10G");
  verb->add_option("--pretrain", options->pretrain, "driple: simulated workloads to train on before measured ones")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  verb->add_option("--study", options->study,
                   "driple: ablations, samples (fewer workloads), transfer (to other settings) or models (left out)");
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->footer(
      "Examples:\n"
      "  forerun train                                        the predictors there are\n"
      "  forerun train hybrid                                 the trees of `forerun predict`, from data/h200\n"
      "  forerun train host                                   what the CPU needs to issue ops, from the same\n"
      "  forerun train intervals                              the range beside a prediction; trains 6 times, --folds "
      "99 once a family\n"
      "  forerun train devices --data FOLDER                  other GPUs, from NeuSight's op latencies in FOLDER\n"
      "  forerun train ets --suite ets-t4 --out data/weights/ets-t4/ets\n"
      "  forerun train ets --suite ets-t4 --set cell=gru --epochs 20 --most 4\n"
      "  forerun train driple --pretrain 3000 --out data/weights/driple-P1w2-10G\n"
      "  forerun train driple --study ablations --out data/weights/driple-P1w2-10G     beside the weights\n"
      "  forerun train --suite ets-t4 --write-cache ets_t4.bin      for forerun-train on a machine with a GPU");
  verb->callback([options, verb, &chosen] {
    options->given = given_options(*verb);
    chosen = [options] { return train(*options); };
  });
}

}  // namespace forerun::cli
