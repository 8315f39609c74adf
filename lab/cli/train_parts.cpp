#include "lab/cli/train_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "cli/command.h"
#include "lab/calibrate/calibrate_devices.h"
#include "lab/calibrate/calibrate_host.h"
#include "lab/calibrate/calibrate_intervals.h"
#include "lab/calibrate/train_hybrid.h"
#include "lab/eval/scale_suite.h"
#include "lab/eval/testbed_suite.h"
#include "records/data_files.h"
#include "report/table.h"

namespace forerun::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSpreadFolds = 6;

void print_data_problem(const DataProblem& problem) { fmt::print(stderr, "forerun: {}\n", problem.error().message()); }

Result<std::vector<std::string>> files_of(const PartOptions& options) {
  std::vector<std::string> paths = options.records;
  if (paths.empty()) {
    const auto folder = data_dir();
    if (!folder) return folder.error();
    paths.push_back((*folder / "h200").string());
  }
  return record_files(paths);
}

int train_trees(const PartOptions& options, const std::vector<std::string>& files) {
  HybridRequest request;
  request.files = files;
  request.without = {options.without.begin(), options.without.end()};
  request.out = options.out;
  request.growth.seed = static_cast<int>(options.seed);
  request.problem = print_data_problem;
  request.progress = [](std::string_view what, size_t done, size_t of) {
    fmt::print(stderr, "{:2} of {} forests: {}\n", done, of, what);
  };
  const auto outcome = train_hybrid(request);
  if (!outcome) return fail(outcome.error());
  if (options.json) {
    fmt::print("{}\n", Json{{"file", outcome->file},
                            {"ops", outcome->ops},
                            {"samples", outcome->samples},
                            {"trees", outcome->trees},
                            {"bytes", outcome->bytes},
                            {"seconds", outcome->seconds}}
                           .dump());
  } else {
    fmt::print("{}: {} trees, {:.1f} MB, from {} ops of iterations and {} op samples in {:.0f} s\n", outcome->file,
               outcome->trees, static_cast<double>(outcome->bytes) / 1e6, outcome->ops, outcome->samples,
               outcome->seconds);
  }
  return kDone;
}

int fit_host_model(const PartOptions& options, const std::vector<std::string>& files) {
  const auto outcome = calibrate_host({.files = files,
                                       .without = {options.without.begin(), options.without.end()},
                                       .out = options.out,
                                       .options = {},
                                       .problem = print_data_problem});
  if (!outcome) return fail(outcome.error());
  if (options.json) {
    Json families = Json::array();
    for (const HeldOutFamily& row : outcome->held_out) {
      families.push_back({{"family", row.family}, {"iterations", row.samples}, {"mre", row.error}, {"bias", row.bias}});
    }
    fmt::print("{}\n", Json{{"file", outcome->file},
                            {"iterations", outcome->fit.samples},
                            {"mre", outcome->fit.error},
                            {"held_out_mre", outcome->held_out_error},
                            {"families", families}}
                           .dump());
    return kDone;
  }
  Table table({"family left out", "iterations", "MRE", "bias"});
  for (const HeldOutFamily& row : outcome->held_out) {
    table.add({row.family, grouped(static_cast<int64_t>(row.samples)), fmt::format("{:.1f} %", 100 * row.error),
               fmt::format("{:+.1f} %", 100 * row.bias)});
  }
  fmt::print("{}: fitted to {} host-bound iterations, MRE {:.1f} %; {:.1f} % with each family left out\n{}",
             outcome->file, outcome->fit.samples, 100 * outcome->fit.error, 100 * outcome->held_out_error,
             table.text());
  return kDone;
}

int measure_intervals(const PartOptions& options, const std::vector<std::string>& files) {
  IntervalsRequest request;
  request.validation.files = files;
  request.validation.folds = options.folds > 0 ? options.folds : kSpreadFolds;
  request.validation.growth.seed = static_cast<int>(options.seed);
  request.validation.problem = print_data_problem;
  request.validation.progress = [](const std::string& what, size_t done, size_t of) {
    fmt::print(stderr, "{:2} of {}: {}\n", done, of, what);
  };
  request.out = options.out;
  fmt::print(stderr, "reading measured ops and iterations; then about a minute a group and core\n");
  const auto outcome = calibrate_intervals(request);
  if (!outcome) return fail(outcome.error());
  const RatioInterval& gpu = outcome->intervals.gpu_bound;
  const RatioInterval& host = outcome->intervals.host_bound;
  if (options.json) {
    fmt::print("{}\n",
               Json{{"file", outcome->file},
                    {"gpu_bound", {{"low", gpu.low}, {"high", gpu.high}, {"iterations", outcome->gpu_bound}}},
                    {"host_bound", {{"low", host.low}, {"high", host.high}, {"iterations", outcome->host_bound}}},
                    {"seconds", outcome->seconds}}
                   .dump());
  } else {
    fmt::print(
        "{}: eight of ten measured times are {} to {} of the predicted where the GPU bounds ({} iterations), {} to {} "
        "where the host does ({}); {:.0f} s\n",
        outcome->file, gpu.low, gpu.high, outcome->gpu_bound, host.low, host.high, outcome->host_bound,
        outcome->seconds);
    fmt::print("{}", to_text(outcome->accuracy));
  }
  return kDone;
}

int fit_devices(const PartOptions& options, const std::vector<std::string>& /*files*/) {
  DeviceRequest request;
  if (!options.records.empty()) request.ops = options.records[0];
  request.progress = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  const auto outcome = calibrate_devices(request, options.out);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", options.json ? to_json(outcome->accuracy) + "\n" : to_text(outcome->accuracy));
  fmt::print(stderr, "{} is written\n", outcome->file);
  return kDone;
}

int fit_scale(const PartOptions& options, const std::vector<std::string>& /*files*/) {
  ScaleSuiteOptions request;
  if (!options.records.empty()) request.rows = options.records[0];
  const auto outcome = calibrate_scale(request, options.out);
  if (!outcome) return fail(outcome.error());
  if (options.json) {
    fmt::print("{}\n", to_json(outcome->accuracy));
  } else {
    fmt::print("{}: fitted to {} iterations on two GPUs: {:.1f} % by the formulas, {:.1f} % with factors of shapes\n{}",
               outcome->file, outcome->rows, 100 * outcome->formulas_error, 100 * outcome->error,
               to_text(outcome->accuracy));
  }
  return kDone;
}

int fit_testbed(const PartOptions& options, const std::vector<std::string>& /*files*/) {
  const auto cost_models = load_cost_models();
  if (!cost_models) return fail(cost_models.error());
  const TestbedRequest request{
      .records = options.records,
      .out = options.out,
      .bad_record = [](const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); },
      .progress = [](double error) { fmt::print(stderr, "mean error {:.2f} %\n", 100 * error); }};
  const auto outcome = calibrate_testbed(request, *cost_models);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}: fitted to {} workloads, mean error of the twelve numbers {:.1f} %\n", outcome->file,
             outcome->workloads, 100 * outcome->error);
  return kDone;
}

struct Part {
  PartEntry entry;
  bool reads_records;
  std::vector<std::string> options;  // beside --data and --out
  int (*train)(const PartOptions&, const std::vector<std::string>& files);
};
const std::vector<Part>& part_list() {
  static const std::vector<Part> list = {
      {{"hybrid", "trees over measured ops, which `forerun predict` asks; needs XGBoost"},
       true,
       {"--without", "--seed", "--json"},
       train_trees},
      {{"host", "what the CPU needs to issue ops"}, true, {"--without", "--json"}, fit_host_model},
      {{"intervals", "the range beside a prediction, from families left out in turn; needs XGBoost"},
       true,
       {"--folds", "--seed", "--json"},
       measure_intervals},
      {{"devices", "how times carry over to other GPUs, from op latencies that others measured"},
       false,
       {"--json"},
       fit_devices},
      {{"scale", "what share of an A100 machine's peak training on several GPUs reaches"},
       false,
       {"--json"},
       fit_scale},
      {{"testbed", "what the hosts of forerun.testbed cost, for its simulation"}, false, {}, fit_testbed},
  };
  return list;
}

}  // namespace

const std::vector<PartEntry>& trained_parts() {
  static const std::vector<PartEntry> entries = [] {
    std::vector<PartEntry> list;
    for (const Part& part : part_list()) list.push_back(part.entry);
    return list;
  }();
  return entries;
}

std::vector<std::string> options_of_part(const std::string& name) {
  std::vector<std::string> read = {"--data", "--out"};
  for (const Part& part : part_list()) {
    if (name == part.entry.name) read.insert(read.end(), part.options.begin(), part.options.end());
  }
  return read;
}

int train_part(const PartOptions& options) {
  for (const Part& part : part_list()) {
    if (options.name != part.entry.name) continue;
    if (!part.reads_records) return part.train(options, {});
    const auto files = files_of(options);
    return files ? part.train(options, *files) : fail(files.error());
  }
  return fail({"there is no part '" + options.name + "'", "", "`forerun train` lists what can be trained"});
}

}  // namespace forerun::cli
