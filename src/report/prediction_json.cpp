// Predictions for programs: one JSON object or one CSV row a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/job_time.h"
#include "report/prediction.h"
#include "report/table.h"

namespace forerun {
namespace {

void write_json(JsonWriter& json, const std::vector<CostShare>& rows) {
  json.begin_array();
  for (const CostShare& row : rows) {
    json.begin_object()
        .field("name", row.name)
        .field("gpu_ms", milliseconds(row.gpu))
        .field("share", row.share)
        .field("ops", row.count)
        .field("bound", row.bound);
    if (!row.phase.empty()) json.field("phase", row.phase);
    if (!row.largest.empty()) json.field("largest", row.largest);
    json.end_object();
  }
  json.end_array();
}

void write_memory(JsonWriter& json, const Prediction& p) {
  const MemoryEstimate& m = p.memory;
  json.begin_object()
      .field("parameters", m.parameters.value)
      .field("gradients", m.gradients.value)
      .field("optimizer_state", m.optimizer_state.value)
      .field("activations", m.activations.value)
      .field("temporaries", m.temporaries.value)
      .field("inputs", m.inputs.value)
      .field("buffers", m.buffers.value)
      .field("workspaces", m.workspaces.value)
      .field("gathered", p.memory_answer.gathered.value)
      .field("gradient_buckets", p.memory_answer.buckets.value)
      .field("fragmentation", p.memory_answer.fragmentation.value)
      .field("context", p.context.value)
      .end_object();
}

void write_memory_ranges(JsonWriter& json, const MemoryAnswer& answer) {
  const auto range = [&](const char* name, const MemoryRange& r) {
    json.key(name)
        .begin_object()
        .field("low", r.low.value)
        .field("expected", r.expected.value)
        .field("high", r.high.value)
        .end_object();
  };
  json.begin_object();
  range("requested", answer.requested);
  range("allocated", answer.allocated);
  range("reserved", answer.reserved);
  range("driver", answer.driver);
  json.end_object();
}

void write_memory_peak(JsonWriter& json, const MemoryAnswer& answer) {
  const PeakMoment& peak = answer.peak;
  json.begin_object()
      .field("op", peak.op)
      .field("module", peak.module)
      .field("phase", peak.phase)
      .field("iteration", peak.iteration + 1)
      .key("live")
      .begin_array();
  for (const LiveShare& share : answer.live) {
    json.begin_object()
        .field("module", share.module)
        .field("kind", name_of(share.use))
        .field("blocks", share.count)
        .field("bytes", share.bytes)
        .field("largest", share.largest)
        .field("largest_of", share.what)
        .end_object();
  }
  json.end_array().end_object();
}

void write_time(JsonWriter& json, const Prediction& p) {
  const IterationTiming& t = p.times;
  json.field("iter_ms", milliseconds(t.iteration))
      .field("iter_low_ms", milliseconds(p.p10))
      .field("iter_high_ms", milliseconds(p.p90))
      .field("gpu_ms", milliseconds(t.gpu_busy))
      .field("host_ms", milliseconds(t.host_busy))
      .field("bound", name_of(t.bound))
      .key("phases")
      .begin_object()
      .field("forward_ms", milliseconds(t.phases[0]))
      .field("backward_ms", milliseconds(t.phases[1]))
      .field("update_ms", milliseconds(t.phases[2]))
      .end_object();
  write_json(json.key("parts_ms"), p.parts);
  json.field("samples_per_second", p.samples_per_second);
}

}  // namespace

namespace {

void write_remedies(JsonWriter& json, const Prediction& p) {
  if (p.remedies.empty()) return;
  json.key("host_remedies").begin_array();
  for (const HostRemedy& remedy : p.remedies) {
    json.begin_object()
        .field("kind", remedy.kind)
        .field("what", remedy.what)
        .field("iter_ms", milliseconds(remedy.iteration))
        .field("samples_per_second", remedy.samples_per_second)
        .end_object();
  }
  json.end_array();
}

}  // namespace

void write_fields(JsonWriter& json, const Prediction& p) {
  const MemoryAnswer& memory = p.memory_answer;
  if (!p.warnings.empty()) json.field("warnings", p.warnings);
  json.field("id", p.id)
      .field("model", p.model)
      .field("gpu", p.gpu)
      .field("batch", p.input.batch)
      .field("precision", name_of(p.setup.precision))
      .field("optimizer", name_of(p.setup.optimizer.kind));
  if (p.setup.compile != CompileMode::none) json.field("compile", name_of(p.setup.compile));
  write_time(json, p);
  if (p.job) write_json(json.key("job"), *p.job);
  json.field("params", p.parameters)
      .field("ops", p.ops)
      .field("kernels", p.kernels)
      .field("peak_allocated", p.memory.peak_allocated.value)
      .field("peak_reserved", p.memory.peak_reserved.value)
      .field("context", p.context.value)
      .field("device_memory", p.device_memory.value)
      .field("fits", memory.verdict == FitVerdict::fits)
      .field("verdict", name_of(memory.verdict))
      .field("memory_at_least", memory.at_least);
  write_memory(json.key("memory"), p);
  write_memory_ranges(json.key("memory_ranges"), memory);
  write_memory_peak(json.key("memory_peak"), memory);
  json.field("allocator_retries", memory.retries)
      .field("measured_share", p.measured_share)
      .field("out_of_distribution_ops", p.out_of_distribution)
      .field("unknown_ops", p.unknown_ops);
  write_json(json.key("costliest_ops"), p.costliest_ops);
  write_json(json.key("costliest_modules"), p.costliest_modules);
  std::vector<std::string> assumptions = p.usual_assumptions;
  assumptions.insert(assumptions.end(), p.assumptions.begin(), p.assumptions.end());
  json.field("assumptions", assumptions);
  write_remedies(json, p);
  if (const DataParallel& parallel = memory.parallel; parallel.any()) {
    json.key("data_parallel")
        .begin_object()
        .field("gpus", parallel.gpus)
        .field("zero", parallel.zero)
        .field("bucket_views", parallel.bucket_views)
        .end_object();
  }
  if (p.tokens_per_second > 0) json.field("tokens_per_second", p.tokens_per_second);
}

std::string to_json(const Prediction& prediction) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.predict/1");
  write_fields(json, prediction);
  return json.end_object().take();
}

std::vector<std::string> csv_columns() {
  return {"id",
          "gpu",
          "batch",
          "precision",
          "optimizer",
          "iter_ms",
          "gpu_ms",
          "host_ms",
          "bound",
          "forward_ms",
          "backward_ms",
          "update_ms",
          "samples_per_second",
          "params",
          "ops",
          "peak_allocated",
          "peak_reserved",
          "fits",
          "unknown_ops",
          "tokens_per_second",
          "verdict"};
}

std::vector<std::string> csv_cells(const Prediction& p) {
  const IterationTiming& t = p.times;
  int64_t unknown = 0;
  for (const auto& [name, count] : p.unknown_ops) unknown += count;
  const auto ms = [](Nanoseconds time) { return fmt::format("{:.6f}", milliseconds(time)); };
  const auto whole = [](int64_t number) { return fmt::format("{}", number); };
  const FitVerdict verdict = p.memory_answer.verdict;
  return {csv_cell(p.id),
          csv_cell(p.gpu),
          whole(p.input.batch),
          std::string(name_of(p.setup.precision)),
          std::string(name_of(p.setup.optimizer.kind)),
          ms(t.iteration),
          ms(t.gpu_busy),
          ms(t.host_busy),
          std::string(name_of(t.bound)),
          ms(t.phases[0]),
          ms(t.phases[1]),
          ms(t.phases[2]),
          fmt::format("{:.3f}", p.samples_per_second),
          whole(p.parameters),
          whole(p.ops),
          whole(p.memory.peak_allocated.value),
          whole(p.memory.peak_reserved.value),
          verdict == FitVerdict::fits ? "true" : "false",
          whole(unknown),
          fmt::format("{:.3f}", p.tokens_per_second),
          std::string(name_of(verdict))};
}

std::string csv_header() { return fmt::format("{}\n", fmt::join(csv_columns(), ",")); }

std::string to_csv(const Prediction& p) { return fmt::format("{}\n", fmt::join(csv_cells(p), ",")); }

}  // namespace forerun
