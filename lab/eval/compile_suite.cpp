#include "lab/eval/compile_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/data_dir.h"
#include "base/json_file.h"
#include "base/line_reader.h"
#include "ingest/capture/run_record.h"
#include "memory/iteration_replay.h"
#include "predict/compiled.h"
#include "predict/predict.h"
#include "predict/predicted_memory.h"

namespace forerun {
namespace {

constexpr const char* kMeasured = "measured.jsonl";
constexpr const char* kCaptures = "captures.jsonl.zst";
constexpr const char* kMachine = "one NVIDIA H200 with PyTorch 2.11, 2026-11-18 and 19";

constexpr int kWarm = 4;  // the first iteration of forerun.compile_pairs, and three

PairFigures read_figures(JsonObject& row, const char* name) {
  JsonObject figures = row.object(name);
  return {
      .iter_ms = figures.number("iter_ms"),
      .gpu_ms = figures.number("gpu_ms"),
      .kernels = figures.number("kernels"),
      .allocated = figures.number("peak_allocated"),
      .reserved = figures.number("peak_reserved"),
      .reserved_kept_cache = figures.has("peak_reserved_kept_cache") ? figures.number("peak_reserved_kept_cache") : 0};
}

// A field of run records, docs/records.md; nothing where the host was not read.
HostCalibration read_host(JsonObject& row) {
  HostCalibration host;
  if (!row.has("host_us")) return host;
  JsonObject forward = row.object("host_us");
  JsonObject backward = forward.object("backward");
  for (const std::string& kind : forward.keys()) {
    if (kind != "backward") host.forward.emplace_back(kind, forward.number(kind));
  }
  for (const std::string& kind : backward.keys()) host.backward.emplace_back(kind, backward.number(kind));
  return host;
}

using CasesByName = std::multimap<std::string, CompileCase>;  // one for each mode that a set-up was measured in

Result<CasesByName> measured_cases(const std::filesystem::path& file) {
  Result<LineReader> lines = LineReader::open(file.string());
  if (!lines) return lines.error();
  CasesByName cases;
  while (true) {
    const auto line = lines->next();
    if (!line) return line.error();
    if (!*line) return cases;
    Result<JsonObject> row = JsonObject::parse(std::string(**line), file.string());
    if (!row) return row.error();
    CompileCase made{.name = row->text("name"), .kept_aside = row->flag("kept_aside")};
    const Result<CompileMode> mode = parse_compile_mode(row->text("mode"));
    made.measured_eager = read_figures(*row, "eager");
    made.measured = read_figures(*row, "compiled");
    made.host = read_host(*row);
    if (!row->status().ok()) return row->status().error();
    if (!mode) return mode.error();
    made.mode = *mode;
    cases.emplace(made.name, std::move(made));
  }
}

PairFigures figures_of(const Prediction& p) {
  return {.iter_ms = milliseconds(p.times.iteration),
          .gpu_ms = milliseconds(p.times.gpu_busy),
          .kernels = static_cast<double>(p.kernels),
          .allocated = static_cast<double>(p.memory.peak_allocated.value),
          .reserved = static_cast<double>(p.memory.peak_reserved.value),
          .reserved_kept_cache = static_cast<double>(p.memory.peak_reserved.value)};
}

// As forerun.compile_pairs measures the default mode: iterations that warm up, then an emptied cache and three more. What lives meanwhile keeps the
// segments of the first iterations, so that a run which was never emptied reserves something else.
MemoryEstimate memory_as_measured(const TrainingRun& run, const Device& device, const CostModels& cost_models) {
  IterationReplayOptions options = replay_options(run, device, cost_models.workspaces, {});
  options.warm = kWarm;
  return replay_iterations(run.graph, options).peak;
}

// As of a machine that was calibrated: what its host was when the pair was measured.
void judge_with_host(TrainingRun eager, TrainingRun run, const Device& device, const CostModels& cost_models,
                     CompileCase& judged) {
  if (judged.host.empty()) return;
  eager.environment.calibration = run.environment.calibration = judged.host;
  judged.with_host = HostReadFigures{.eager_iter_ms = milliseconds(predict(eager, device, cost_models).times.iteration),
                                     .iter_ms = milliseconds(predict(run, device, cost_models).times.iteration)};
}

Status judge(const RunRecord& record, const Device& device, const CostModels& cost_models, CompileCase& judged) {
  const Result<TrainingRun> eager = recorded_run(record, device);
  if (!eager) return eager.error();
  const Result<TrainingRun> run = recorded_run(record, device, judged.mode);
  if (!run) return run.error();
  judged.predicted_eager = figures_of(predict(*eager, device, cost_models));
  const CompiledPrediction compiled = predict_compiled(*run, device, cost_models);
  const Prediction& p = compiled.prediction;
  judged.predicted = figures_of(p);
  if (!launches_graphs(judged.mode)) {  // of those, the peaks of the whole run were measured
    const MemoryEstimate memory = memory_as_measured(*run, device, cost_models);
    judged.predicted.allocated = static_cast<double>(memory.peak_allocated.value);
    judged.predicted.reserved = static_cast<double>(memory.peak_reserved.value);
  }
  judged.bound = name_of(p.times.bound);
  judged.iter_low_ms = milliseconds(p.p10);
  judged.iter_high_ms = milliseconds(p.p90);
  judged.gpu_low_ms = milliseconds(compiled.gpu_low);
  judged.gpu_high_ms = milliseconds(compiled.gpu_high);
  judged.allocated_low = static_cast<double>(p.memory_answer.allocated.low.value);
  judged.allocated_high = static_cast<double>(p.memory_answer.allocated.high.value);
  judge_with_host(*eager, *run, device, cost_models, judged);
  return {};
}

}  // namespace

Result<CompileAccuracy> evaluate_compile(const CompileSuiteOptions& options, const WorkControl& control) {
  const Result<std::filesystem::path> data = data_dir();
  if (!data) return data.error();
  const std::filesystem::path folder =
      options.folder.empty() ? *data / "compile" : std::filesystem::path(options.folder);
  Result<CasesByName> cases = measured_cases(folder / kMeasured);
  if (!cases) return cases.error();
  const Result<CostModels> cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  const Result<Device> device = cost_models->devices.find(std::string(kDefaultGpu));
  if (!device) return device.error();
  Result<RunRecordReader> reader = RunRecordReader::open((folder / kCaptures).string(), Fields::inputs, {});
  if (!reader) return reader.error();
  Work work(control, "set-ups", static_cast<int64_t>(cases->size()));
  CompileAccuracy accuracy;
  while (true) {
    const Result<std::optional<RunRecord>> next = reader->next();
    if (!next) return next.error();
    if (!next->has_value()) break;
    const auto [first, last] = cases->equal_range((*next)->run.id);
    if (first == last) accuracy.problems.push_back((*next)->run.id + ": was not measured");
    for (auto found = first; found != last; ++found) {
      if (const Status status = judge(**next, *device, *cost_models, found->second); !status.ok()) {
        accuracy.problems.push_back(found->first + ": " + status.error().message());
      } else {
        accuracy.cases.push_back(std::move(found->second));
      }
      if (const Status status = work.advance(); !status.ok()) return status.error();
    }
    cases->erase(first, last);
  }
  for (const auto& [name, judged] : *cases) accuracy.problems.push_back(name + ": has no capture");
  if (accuracy.cases.empty()) {
    return Error{"there is no set-up to judge on", folder.string(),
                 fmt::format("keep {} and {} of the same set-ups there", kMeasured, kCaptures)};
  }
  std::sort(accuracy.cases.begin(), accuracy.cases.end(),
            [](const CompileCase& a, const CompileCase& b) { return a.name < b.name; });
  accuracy.data = fmt::format("{} pairs of {}, measured as they are and under torch.compile on {}",
                              accuracy.cases.size(), folder.filename().string(), kMachine);
  return accuracy;
}

}  // namespace forerun
