// Predictions for programs: one JSON object or one CSV row a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/csv_cells.h"
#include "report/prediction.h"
#include "report/table.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

Json costs(const std::vector<CostShare>& rows) {
  Json list = Json::array();
  for (const CostShare& row : rows) {
    Json item = {{"name", row.name},
                 {"gpu_ms", milliseconds(row.gpu)},
                 {"share", row.share},
                 {"ops", row.count},
                 {"bound", row.bound}};
    if (!row.phase.empty()) item["phase"] = row.phase;
    if (!row.largest.empty()) item["largest"] = row.largest;
    list.push_back(item);
  }
  return list;
}

Json memory_ranges(const MemoryAnswer& answer) {
  const auto range = [](const MemoryRange& r) {
    return Json{{"low", r.low.value}, {"expected", r.expected.value}, {"high", r.high.value}};
  };
  return {{"requested", range(answer.requested)},
          {"allocated", range(answer.allocated)},
          {"reserved", range(answer.reserved)},
          {"driver", range(answer.driver)}};
}

Json memory_peak(const MemoryAnswer& answer) {
  Json live = Json::array();
  for (const LiveShare& share : answer.live) {
    live.push_back({{"module", share.module},
                    {"kind", name_of(share.use)},
                    {"blocks", share.count},
                    {"bytes", share.bytes},
                    {"largest", share.largest},
                    {"largest_of", share.what}});
  }
  const PeakMoment& peak = answer.peak;
  return {{"op", peak.op},
          {"module", peak.module},
          {"phase", peak.phase},
          {"iteration", peak.iteration + 1},
          {"live", live}};
}

}  // namespace

std::string to_json(const Prediction& p) {
  const MemoryEstimate& m = p.memory;
  const IterationTiming& t = p.times;
  Json json = {
      {"id", p.id},
      {"model", p.model},
      {"gpu", p.gpu},
      {"batch", p.input.batch},
      {"precision", name_of(p.setup.precision)},
      {"optimizer", name_of(p.setup.optimizer.kind)},
      {"iter_ms", milliseconds(t.iteration)},
      {"iter_low_ms", milliseconds(p.p10)},
      {"iter_high_ms", milliseconds(p.p90)},
      {"gpu_ms", milliseconds(t.gpu_busy)},
      {"host_ms", milliseconds(t.host_busy)},
      {"bound", name_of(t.bound)},
      {"phases",
       {{"forward_ms", milliseconds(t.phases[0])},
        {"backward_ms", milliseconds(t.phases[1])},
        {"update_ms", milliseconds(t.phases[2])}}},
      {"samples_per_second", p.samples_per_second},
      {"params", p.parameters},
      {"ops", p.ops},
      {"kernels", p.kernels},
      {"peak_allocated", m.peak_allocated.value},
      {"peak_reserved", m.peak_reserved.value},
      {"context", p.context.value},
      {"device_memory", p.device_memory.value},
      {"fits", p.memory_answer.verdict == FitVerdict::fits},
      {"verdict", name_of(p.memory_answer.verdict)},
      {"memory_at_least", p.memory_answer.at_least},
      {"memory",
       {{"parameters", m.parameters.value},
        {"gradients", m.gradients.value},
        {"optimizer_state", m.optimizer_state.value},
        {"activations", m.activations.value},
        {"temporaries", m.temporaries.value},
        {"inputs", m.inputs.value},
        {"buffers", m.buffers.value},
        {"workspaces", m.workspaces.value},
        {"gathered", p.memory_answer.gathered.value},
        {"gradient_buckets", p.memory_answer.buckets.value},
        {"fragmentation", p.memory_answer.fragmentation.value},
        {"context", p.context.value}}},
      {"memory_ranges", memory_ranges(p.memory_answer)},
      {"memory_peak", memory_peak(p.memory_answer)},
      {"allocator_retries", p.memory_answer.retries},
      {"measured_share", p.measured_share},
      {"out_of_distribution_ops", p.out_of_distribution},
      {"unknown_ops", p.unknown_ops},
      {"costliest_ops", costs(p.costliest_ops)},
      {"costliest_modules", costs(p.costliest_modules)},
      {"assumptions", p.assumptions},
  };
  const DataParallel& parallel = p.memory_answer.parallel;
  if (parallel.any()) {
    json["data_parallel"] = {{"gpus", parallel.gpus}, {"zero", parallel.zero}, {"bucket_views", parallel.bucket_views}};
  }
  if (p.tokens_per_second > 0) json["tokens_per_second"] = p.tokens_per_second;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
