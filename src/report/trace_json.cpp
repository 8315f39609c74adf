// The analysis of traces as JSON and CSV. Times are microseconds with three decimals: whole nanoseconds.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/csv_cells.h"
#include "report/table.h"
#include "report/trace_report.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

double us(Nanoseconds time) { return static_cast<double>(time.value) / 1000.0; }  // the nearest: prints as it is

Json causes_json(const IdleCauses& causes) {
  return {{"host_wait_us", us(causes.host_wait)},
          {"kernel_wait_us", us(causes.kernel_wait)},
          {"other_us", us(causes.other)}};
}

Json device_json(const DeviceBreakdown& device) {
  Json streams = Json::array();
  for (const StreamUse& use : device.streams) {
    streams.push_back(
        {{"stream", use.stream}, {"events", use.events}, {"busy_us", us(use.busy)}, {"idle", causes_json(use.idle)}});
  }
  return {{"device", device.device},
          {"events", device.events},
          {"span_us", us(device.span)},
          {"idle_us", us(device.idle)},
          {"compute_us", us(device.compute)},
          {"non_compute_us", us(device.non_compute())},
          {"communication_us", us(device.communication)},
          {"copy_us", us(device.copy)},
          {"exposed_communication_us", us(device.exposed_communication)},
          {"exposed_copy_us", us(device.exposed_copy)},
          {"overlap_us", us(device.overlap)},
          {"overlap_percent", 100 * device.overlap_share()},
          {"idle_causes", causes_json(device.causes)},
          {"streams", streams}};
}

Json usage_json(const std::vector<UsageRow>& rows, size_t top, bool kernels) {
  Json list = Json::array();
  for (size_t i = 0; i < rows.size() && i < top; ++i) {
    const UsageRow& row = rows[i];
    Json entry = {{"name", row.name}, {"count", row.count}, {"gpu_us", us(row.gpu)}};
    if (kernels) {
      entry["kind"] = name_of(row.kind);
      entry["shortest_us"] = us(row.shortest);
      entry["longest_us"] = us(row.longest);
    } else {
      entry["host_us"] = us(row.host);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json launches_json(const RankAnalysis& rank) {
  const LaunchStatistics& l = rank.launches;
  return {{"launches", l.launches},
          {"calls", l.calls},
          {"sharing_a_call", l.graph_kernels},
          {"call_median_us", us(l.call_median)},
          {"call_p90_us", us(l.call_p90)},
          {"call_total_us", us(l.call_total)},
          {"slow_calls", l.slow_calls},
          {"delay_median_us", us(l.delay_median)},
          {"delay_p90_us", us(l.delay_p90)},
          {"delay_longest_us", us(l.delay_longest)},
          {"late_starts", l.late_starts},
          {"shorter_than_their_call", l.short_work}};
}

Json rank_json(const RankAnalysis& rank, size_t top) {
  Json devices = Json::array(), queues = Json::array(), steps = Json::array();
  for (const DeviceBreakdown& device : rank.devices) devices.push_back(device_json(device));
  for (const QueueLength& queue : rank.queues) {
    queues.push_back({{"device", queue.device},
                      {"stream", queue.stream},
                      {"mean", queue.mean},
                      {"longest", queue.longest},
                      {"empty_us", us(queue.empty)},
                      {"at_limit_us", us(queue.at_limit)}});
  }
  for (const Nanoseconds step : rank.steps) steps.push_back(milliseconds(step));
  const TraceCounts& counts = rank.counts;
  return {{"file", rank.file},
          {"rank", rank.rank},
          {"gpu", rank.gpu},
          {"events",
           {{"read", counts.read},
            {"kept", counts.kept},
            {"repaired", counts.repaired},
            {"skipped", counts.skipped},
            {"truncated", counts.truncated}}},
          {"device_work", rank.device_work},
          {"linked", rank.linked},
          {"linked_share",
           rank.device_work == 0 ? 0.0 : static_cast<double>(rank.linked) / static_cast<double>(rank.device_work)},
          {"communication_kernels", rank.communication_kernels},
          {"steps", {{"source", name_of(rank.step_source)}, {"ms", steps}}},
          {"devices", devices},
          {"kernels", usage_json(rank.usage.kernels, top, true)},
          {"ops", usage_json(rank.usage.ops, top, false)},
          {"modules", usage_json(rank.usage.modules, top, false)},
          {"modules_named", rank.has_modules},
          {"phases", usage_json(rank.usage.phases, top, false)},
          {"launches", launches_json(rank)},
          {"queues", queues}};
}

Json comparison_json(const RankComparison& comparison) {
  Json rows = Json::array();
  for (const RankRow& row : comparison.ranks) {
    rows.push_back({{"rank", row.rank},
                    {"file", row.file},
                    {"clock_offset_us", row.aligned ? Json(us(row.clock_offset)) : Json(nullptr)},
                    {"collectives", row.collectives},
                    {"arrived_last", row.arrived_last},
                    {"kept_waiting_us", us(row.kept_waiting)},
                    {"compute_us", us(row.compute)},
                    {"communication_us", us(row.communication)},
                    {"step_ms", milliseconds(row.step)}});
  }
  const bool straggler = comparison.straggler >= 0;
  return {{"ranks", rows},
          {"matched_collectives", comparison.matched},
          {"straggler",
           straggler ? Json(comparison.ranks[static_cast<size_t>(comparison.straggler)].rank) : Json(nullptr)}};
}

Json path_json(const TracePath& path, size_t top) {
  Json names = Json::array(), levers = Json::array();
  for (size_t i = 0; i < path.names.size() && i < top; ++i) {
    const PathShare& share = path.names[i];
    names.push_back(
        {{"name", share.name}, {"kind", name_of(share.kind)}, {"tasks", share.tasks}, {"us", us(share.time)}});
  }
  for (const Lever& lever : path.levers) {
    levers.push_back({{"name", lever.name},
                      {"kind", name_of(lever.kind)},
                      {"on_path_us", us(lever.on_path)},
                      {"saved_us_if_twice_as_fast", us(lever.saved)}});
  }
  return {{"simulated_us", us(path.simulated)},
          {"measured_us", us(path.measured)},
          {"tasks", path.tasks},
          {"host_us", us(path.host)},
          {"gpu_us", us(path.gpu)},
          {"communication_us", us(path.communication)},
          {"waits_us", us(path.waits)},
          {"syncs_found", path.counts.syncs_found},
          {"syncs_inferred", path.counts.syncs_inferred},
          {"names", names},
          {"levers", levers}};
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void usage_csv(int64_t rank, const char* section, const std::vector<UsageRow>& rows, std::string& out) {
  for (const UsageRow& row : rows) {
    out += fmt::format("{},{},{},{},{:.3f},{:.3f}\n", rank, section, csv_cell(row.name), row.count, us(row.gpu),
                       us(row.host));
  }
}

}  // namespace

std::string to_json(const TraceAnalysis& analysis, const TraceReportOptions& options) {
  Json files = Json::array();
  for (const RankAnalysis& rank : analysis.ranks) files.push_back(rank_json(rank, options.top));
  Json json = {{"files", files}, {"ranks", comparison_json(analysis.comparison)}};
  json["critical_path"] = analysis.path ? path_json(*analysis.path, options.top) : Json(nullptr);
  json["warnings"] = warnings_of(analysis);
  return dumped(json);
}

std::string to_csv(const TraceAnalysis& analysis) {
  std::string out = "rank,section,name,count,gpu_us,host_us\n";
  for (const RankAnalysis& rank : analysis.ranks) {
    for (const DeviceBreakdown& device : rank.devices) {
      const auto row = [&](const char* name, Nanoseconds time) {
        out += fmt::format("{},breakdown,gpu {} {},,{:.3f},\n", rank.rank, device.device, name, us(time));
      };
      row("span", device.span);
      row("compute", device.compute);
      row("communication", device.communication);
      row("copy", device.copy);
      row("idle", device.idle);
      row("idle host wait", device.causes.host_wait);
      row("idle kernel wait", device.causes.kernel_wait);
      row("idle other", device.causes.other);
      row("overlap", device.overlap);
    }
    usage_csv(rank.rank, "kernel", rank.usage.kernels, out);
    usage_csv(rank.rank, "op", rank.usage.ops, out);
    usage_csv(rank.rank, "module", rank.usage.modules, out);
    usage_csv(rank.rank, "phase", rank.usage.phases, out);
  }
  return out;
}

std::string to_json(const TraceChanges& changes, const TraceReportOptions& options) {
  const auto list = [&](const std::vector<ChangeRow>& rows) {
    Json out = Json::array();
    for (size_t i = 0; i < rows.size() && i < options.top; ++i) {
      const ChangeRow& row = rows[i];
      out.push_back({{"name", row.name},
                     {"count_before", row.count_before},
                     {"count_after", row.count_after},
                     {"before_us", us(row.before)},
                     {"after_us", us(row.after)},
                     {"change_us", us(row.change())}});
    }
    return out;
  };
  return dumped({{"step_before_ms", milliseconds(changes.step_before)},
                 {"step_after_ms", milliseconds(changes.step_after)},
                 {"kernels", list(changes.kernels)},
                 {"ops", list(changes.ops)}});
}

std::string to_csv(const TraceChanges& changes) {
  std::string out = "section,name,count_before,count_after,before_us,after_us,change_us\n";
  const auto list = [&](const char* section, const std::vector<ChangeRow>& rows) {
    for (const ChangeRow& row : rows) {
      out += fmt::format("{},{},{},{},{:.3f},{:.3f},{:.3f}\n", section, csv_cell(row.name), row.count_before,
                         row.count_after, us(row.before), us(row.after), us(row.change()));
    }
  };
  list("kernel", changes.kernels);
  list("op", changes.ops);
  return out;
}

}  // namespace forerun
