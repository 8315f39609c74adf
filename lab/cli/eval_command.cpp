// forerun eval: the accuracy of trained predictors on the test split of a suite, beside what the papers published.
#include <fmt/format.h>

#include <map>

#include "base/nearest.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "lab/calibrate/calibrate_devices.h"
#include "lab/calibrate/left_out_suite.h"
#include "lab/cli/lab_verbs.h"
#include "lab/eval/ddl_benchmark_suite.h"
#include "lab/eval/driple_suite.h"
#include "lab/eval/memory_suite.h"
#include "lab/eval/scale_suite.h"
#include "lab/eval/suites.h"
#include "lab/eval/testbed_suite.h"
#include "lab/eval/whatif_suite.h"
#include "records/data_files.h"

namespace forerun::cli {
namespace {

struct EvalOptions {
  std::string suite = "h200";
  SuiteOptions data;
  bool leave_out = false;
  int folds = 0;
  std::string write_intervals;
  std::string setting = kBaseResourceSetting;
  bool json = false;
  std::vector<std::string> given;  // options, by name
};

void print(const SuiteResult& result, bool json) {
  fmt::print("{}{}", json ? to_json(result) : to_text(result), json ? "\n" : "");
}

// Other GPUs are judged by op latencies and whole models that others measured, and not by records.
int judge_devices(const EvalOptions& options) {
  DeviceRequest request;
  if (!options.data.records.empty()) request.ops = options.data.records[0];
  request.ets = options.data.traces;
  request.progress = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  const auto check = evaluate_devices(request);
  if (!check) return fail(check.error());
  fmt::print("{}", options.json ? to_json(*check) + "\n" : to_text(*check));
  return kDone;
}

// Peaks of memory have a table of their own.
int judge_memory(const EvalOptions& options) {
  MemorySuiteOptions request{.records = options.data.records, .problem = options.data.problem};
  request.progress = [](int64_t runs) {
    if (runs % 100 == 0) fmt::print(stderr, "{} runs\n", runs);
  };
  const auto accuracy = evaluate_memory(request);
  if (!accuracy) return fail(accuracy.error());
  fmt::print("{}", options.json ? to_json(*accuracy) + "\n" : to_text(*accuracy));
  if (options.write_intervals.empty()) return kDone;
  const Status written = write_whole_file(options.write_intervals, to_json(accuracy->intervals, accuracy->data));
  return written ? kDone : fail(written.error());
}

// So have throughputs of data-parallel training.
int judge_throughputs(const EvalOptions& options) {
  if (options.data.records.size() > 1) {
    return fail({"hkbu is judged on one table", "--data", "name one CSV file"});
  }
  const auto progress = [](int64_t rows) {
    if (rows % 12 == 0) fmt::print(stderr, "{} rows fitted\n", rows);
  };
  const auto accuracy = evaluate_ddl_benchmark(options.data.records.empty() ? "" : options.data.records[0], progress);
  if (!accuracy) return fail(accuracy.error());
  fmt::print("{}", options.json ? to_json(*accuracy) + "\n" : to_text(*accuracy));
  return kDone;
}

// And steps of many GPUs.
int judge_scale(const EvalOptions& options) {
  if (options.data.records.size() > 1) {
    return fail({options.suite + " is judged on one table", "--data", "name one CSV file"});
  }
  const std::string table = options.data.records.empty() ? "" : options.data.records[0];
  const auto accuracy = options.suite == "vtrain"     ? evaluate_vtrain({.rows = table})
                        : options.suite == "megatron" ? evaluate_megatron({})
                                                      : evaluate_foundry(table);
  if (!accuracy) return fail(accuracy.error());
  fmt::print("{}", options.json ? to_json(*accuracy) + "\n" : to_text(*accuracy));
  return kDone;
}

// And variants of a traced step.
int judge_whatif(const EvalOptions& options) {
  if (options.data.records.size() > 1) {
    return fail({"whatif is judged on one folder", "--data", "name the folder of whatif.jsonl.gz and whatif_traces"});
  }
  WhatIfSuiteOptions request;
  if (!options.data.records.empty()) request.folder = options.data.records[0];
  request.progress = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  const auto accuracy = evaluate_whatif(request);
  if (!accuracy) return fail(accuracy.error());
  fmt::print("{}", options.json ? to_json(*accuracy) + "\n" : to_text(*accuracy));
  return kDone;
}

// And what distributed training does to GPU and network.
int judge_testbed(const EvalOptions& options) {
  const auto cost_models = load_cost_models();
  if (!cost_models) return fail(cost_models.error());
  TestbedRequest request{.records = options.data.records};
  request.bad_record = [](const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); };
  const auto accuracy = evaluate_testbed(request, *cost_models);
  if (!accuracy) return fail(accuracy.error());
  fmt::print("{}", options.json ? to_json(*accuracy) + "\n" : to_text(*accuracy));
  return kDone;
}

// Driple, the simulation and trees on it, on families that nothing was trained on.
int judge_driple(const EvalOptions& options) {
  DripleEvaluation request{.setting = options.setting,
                           .data = {.records = options.data.records, .problem = {}},
                           .weights = options.data.weights};
  request.data.problem = [](const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); };
  const auto accuracy = evaluate_driple(request);
  if (!accuracy) return fail(accuracy.error());
  fmt::print("{}", options.json ? to_json(*accuracy) + "\n" : to_text(*accuracy));
  return kDone;
}

int leave_out(const EvalOptions& options) {
  if (options.suite != "h200") {
    return fail({"families are left out of the suite h200 only", "--leave-one-out", "leave out --suite"});
  }
  const auto paths = suite_records(options.data);
  if (!paths) return fail(paths.error());
  const auto files = record_files(*paths);
  if (!files) return fail(files.error());
  CrossValidation request;
  request.files = *files;
  request.folds = options.folds;
  request.problem = options.data.problem;
  request.progress = [](const std::string& what, size_t done, size_t of) {
    fmt::print(stderr, "{:2} of {}: {}\n", done, of, what);
  };
  const auto result = evaluate_left_out(request);
  if (!result) return fail(result.error());
  print(*result, options.json);
  return kDone;
}

// What each suite reads beside --suite and --json.
const std::map<std::string, std::vector<std::string>>& suite_options() {
  static const std::map<std::string, std::vector<std::string>> list = {
      {"h200", {"--weights", "--data", "--cache"}},
      {"ets-t4", {"--weights", "--traces", "--cache"}},
      {"ets-2080ti", {"--weights", "--traces", "--cache"}},
      {"seeds", {"--traces", "--data", "--weights", "--cache"}},  // refuses the last two itself
      {"devices", {"--data", "--traces"}},
      {"memory", {"--data", "--write-intervals"}},
      {"whatif", {"--data"}},
      {"hkbu", {"--data"}},
      {"vtrain", {"--data"}},
      {"megatron", {}},
      {"llm-foundry", {"--data"}},
      {"testbed", {"--data"}},
      {"driple", {"--data", "--weights", "--setting"}}};
  return list;
}

Status check_eval_options(const EvalOptions& options) {
  const auto suite = suite_options().find(options.suite);
  if (suite == suite_options().end()) {
    std::vector<std::string> names;
    for (const auto& [name, read] : suite_options()) names.push_back(name);
    return Error{"there is no suite '" + options.suite + "'", "--suite", did_you_mean(options.suite, names)};
  }
  std::vector<std::string> read = suite->second;
  std::string form = "forerun eval --suite " + options.suite;
  if (options.leave_out) {
    read = {"--data", "--leave-one-out", "--folds"};
    form = "forerun eval --leave-one-out";
  }
  read.insert(read.end(), {"--suite", "--json"});
  return check_given(options.given, read, form);
}

int evaluate(const EvalOptions& given) {
  EvalOptions options = given;
  if (const Status status = check_eval_options(options); !status) return fail(status.error());
  options.data.problem = [](const DataProblem& problem) {
    fmt::print(stderr, "forerun: {}\n", problem.error().message());
  };
  if (options.leave_out) return leave_out(options);
  if (options.suite == "devices") return judge_devices(options);
  if (options.suite == "memory") return judge_memory(options);
  if (options.suite == "whatif") return judge_whatif(options);
  if (options.suite == "hkbu") return judge_throughputs(options);
  if (options.suite == "testbed") return judge_testbed(options);
  if (options.suite == "driple") return judge_driple(options);
  if (options.suite == "vtrain" || options.suite == "megatron" || options.suite == "llm-foundry") {
    return judge_scale(options);
  }
  const auto results = evaluate_suite(options.suite, options.data);
  if (!results) return fail(results.error());
  for (const SuiteResult& result : *results) print(result, options.json);
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* verb = app.add_subcommand("eval", "Accuracy of trained predictors, beside what the papers published");
  verb->add_option("--suite", options->suite,
                   "ets-t4, ets-2080ti, h200 (default), devices, memory, whatif, hkbu, vtrain, megatron, llm-foundry, "
                   "testbed, driple, or seeds: the papers' tables");
  verb->add_option("--weights", options->data.weights,
                   "Folders that `forerun train --out` wrote; without it all of data/weights/SUITE");
  verb->add_option("--traces", options->data.traces, "Folder of the ETS authors' traces");
  verb->add_option("--data", options->data.records, "Record files or folders, in place of the data folder's");
  verb->add_option("--cache", options->data.cache, "A data set that `forerun train --write-cache` wrote");
  verb->add_flag("--leave-one-out", options->leave_out,
                 "h200: judge `forerun predict` on the training families, each predicted without it");
  verb->add_option("--folds", options->folds, "--leave-one-out: leave families out in so many groups, which is faster")
      ->check(CLI::Range(2, 99));
  verb->add_option("--write-intervals", options->write_intervals,
                   "memory: write the ranges that predictions show (data/memory/intervals.json)");
  verb->add_option("--setting", options->setting, "driple: servers, workers and network, such as P1w2-1G");
  verb->add_flag("--json", options->json, "One JSON object a suite on standard output");
  verb->footer(
      "Errors are relative to what was measured: MRE = mean of |predicted - measured| / measured.\n"
      "Nothing that is judged here was trained or tuned on: splits are by model family. Families of --data that\n"
      "data/h200/split.json does not name count as test families.\n"
      "Examples:\n"
      "  forerun eval --suite seeds                     the papers' tables, ours beside theirs\n"
      "  forerun eval --leave-one-out --folds 6         the training families, each left out of the training\n"
      "  forerun eval --suite memory                    peaks of memory, with what others do beside ours\n"
      "  forerun eval --suite whatif                    optimizations of traced steps, against measured variants\n"
      "  forerun eval --suite hkbu                      data-parallel training on several networks and schedules\n"
      "  forerun eval --suite vtrain                    Megatron on up to eight A100; megatron: on up to 3,072\n"
      "  forerun eval --suite testbed                   bursts and idles of distributed training, simulated\n"
      "  forerun eval --suite driple                    the same, predicted for models that nothing was trained on\n"
      "  forerun eval --suite devices --data FOLDER     other GPUs, by NeuSight's op latencies unpacked in FOLDER\n"
      "  forerun eval --suite h200 --data more.jsonl.gz other records");
  verb->callback([options, verb, &chosen] {
    options->given = given_options(*verb);
    chosen = [options] { return evaluate(*options); };
  });
}

}  // namespace forerun::cli
