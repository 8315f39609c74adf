#include "api/schedule_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "records/data_files.h"
#include "records/data_scan.h"
#include "records/data_split.h"

namespace forerun {
namespace {

constexpr double kMedianIterations = 20'000;
constexpr double kSpread = 1.5;  // of their logarithm

struct MeasuredRun {
  std::string id, family, gpu;
  double step_ms = 0;
  Bytes memory;
  int64_t line = 0;
};

struct MeasuredRuns {
  std::vector<MeasuredRun> runs;
  int64_t seen = 0;  // by the predictor when it was trained
};

Result<MeasuredRuns> read_runs(const std::vector<std::string>& files, const cluster::LoadOptions& options) {
  const auto split = DataSplit::beside(files);
  if (!split) return split.error();
  MeasuredRuns read;
  const auto take = [&](const RunRecord& record, const DataPlace& place) {
    if (!record.measured || record.measured->status != RunStatus::ok || !(record.measured->pipelined_median_ms > 0))
      return;
    if (split->part_of(record.run) == DataSplit::kTrain) {
      ++read.seen;
      return;
    }
    read.runs.push_back({record.run.id, record.run.family, cluster::canonical_type(record.run.environment.gpu),
                         record.measured->pipelined_median_ms, record.measured->peak_reserved, place.line});
  };
  const DataHandlers handlers{.run = take, .sample = {}, .problem = [](const DataProblem&) {}};
  const Status status = options.work != nullptr ? scan_files(files, Fields::description, handlers, *options.work)
                                                : scan_files(files, Fields::description, handlers);
  if (!status) return status.error();
  if (read.runs.empty()) {
    return Error{fmt::format("no measured run of a family that was not trained on ({} of others)", read.seen), files[0],
                 "name files of run records, as data/h200"};
  }
  return read;
}

// The same on every machine: normal numbers by Box and Muller.
double draw_iterations(std::mt19937_64& random) {
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 1) * 0x1p-53; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  const double normal = radius * std::cos(2 * M_PI * uniform());
  return std::round(kMedianIterations * std::exp(kSpread * normal)) + 1;
}

}  // namespace

Result<RecordJobs> load_record_jobs(const std::string& path, const cluster::LoadOptions& options, uint64_t seed) {
  RecordJobs answer;
  auto files = record_files({path});
  if (!files) return files.error();
  answer.files = *std::move(files);
  auto read = read_runs(answer.files, options);
  if (!read) return read.error();
  std::vector<std::string> types;
  for (const MeasuredRun& run : read->runs) {
    if (std::find(types.begin(), types.end(), run.gpu) == types.end()) types.push_back(run.gpu);
  }
  std::mt19937_64 random(seed);
  std::vector<MeasuredRun>& runs = read->runs;
  for (size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[random() % i]);
  cluster::JobCollector jobs(path, options, types);
  for (const MeasuredRun& run : runs) {
    cluster::JobRow row;
    row.id = run.id;
    row.kind = run.family;
    row.job.memory = run.memory;
    row.configuration.emplace();
    row.configuration->record = run.id;
    row.iterations = draw_iterations(random);
    row.measured = true;
    for (const std::string& type : types) {
      const double duration = row.iterations * run.step_ms * 1e-3;
      row.durations.push_back(type == run.gpu ? cluster::time_from_seconds(duration) : cluster::kNever);
    }
    if (Status status = jobs.add(std::move(row), run.line); !status) return status.error();
  }
  auto loaded = jobs.finish(cluster::TieOrder::source);
  if (!loaded) return loaded.error();
  answer.loaded = *std::move(loaded);
  answer.loaded.filtered += read->seen;
  answer.loaded.real = {"step time", "memory", "model family"};
  answer.loaded.made = {"iterations: drawn, median 20,000", "submission: all at 0",
                        fmt::format("{} runs of families that the predictor was trained on are left out", read->seen)};
  return answer;
}

}  // namespace forerun
