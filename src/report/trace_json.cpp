// The analysis of traces as JSON and CSV. Times are microseconds with three decimals: whole nanoseconds.
#include <fmt/format.h>

#include <algorithm>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/table.h"
#include "report/trace_report.h"

namespace forerun {
namespace {

double us(Nanoseconds time) { return static_cast<double>(time.value) / 1000.0; }  // the nearest: prints as it is

void write_json(JsonWriter& json, const IdleCauses& causes) {
  json.begin_object()
      .field("host_wait_us", us(causes.host_wait))
      .field("kernel_wait_us", us(causes.kernel_wait))
      .field("other_us", us(causes.other))
      .end_object();
}

void write_json(JsonWriter& json, const DeviceBreakdown& device) {
  json.begin_object()
      .field("device", device.device)
      .field("events", device.events)
      .field("span_us", us(device.span))
      .field("idle_us", us(device.idle))
      .field("compute_us", us(device.compute))
      .field("non_compute_us", us(device.non_compute()))
      .field("communication_us", us(device.communication))
      .field("copy_us", us(device.copy))
      .field("exposed_communication_us", us(device.exposed_communication))
      .field("exposed_copy_us", us(device.exposed_copy))
      .field("overlap_us", us(device.overlap))
      .field("overlap_percent", 100 * device.overlap_share());
  write_json(json.key("idle_causes"), device.causes);
  json.key("streams").begin_array();
  for (const StreamUse& use : device.streams) {
    json.begin_object().field("stream", use.stream).field("events", use.events).field("busy_us", us(use.busy));
    write_json(json.key("idle"), use.idle);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_usage(JsonWriter& json, const std::vector<UsageRow>& rows, size_t top, bool kernels) {
  json.begin_array();
  for (size_t i = 0; i < rows.size() && i < top; ++i) {
    const UsageRow& row = rows[i];
    json.begin_object().field("name", row.name).field("count", row.count).field("gpu_us", us(row.gpu));
    if (kernels) {
      json.field("kind", name_of(row.kind)).field("shortest_us", us(row.shortest)).field("longest_us", us(row.longest));
    } else {
      json.field("host_us", us(row.host));
    }
    json.end_object();
  }
  json.end_array();
}

void write_json(JsonWriter& json, const LaunchStatistics& l) {
  json.begin_object()
      .field("launches", l.launches)
      .field("calls", l.calls)
      .field("sharing_a_call", l.graph_kernels)
      .field("call_median_us", us(l.call_median))
      .field("call_p90_us", us(l.call_p90))
      .field("call_total_us", us(l.call_total))
      .field("slow_calls", l.slow_calls)
      .field("delay_median_us", us(l.delay_median))
      .field("delay_p90_us", us(l.delay_p90))
      .field("delay_longest_us", us(l.delay_longest))
      .field("late_starts", l.late_starts)
      .field("shorter_than_their_call", l.short_work)
      .end_object();
}

void write_json(JsonWriter& json, const TraceCounts& counts) {
  json.begin_object()
      .field("read", counts.read)
      .field("kept", counts.kept)
      .field("repaired", counts.repaired)
      .field("skipped", counts.skipped)
      .field("truncated", counts.truncated)
      .end_object();
}

void write_steps(JsonWriter& json, const RankAnalysis& rank) {
  json.begin_object().field("source", name_of(rank.step_source)).key("ms").begin_array();
  for (const Nanoseconds step : rank.steps) json.value(milliseconds(step));
  json.end_array().end_object();
}

void write_queues(JsonWriter& json, const RankAnalysis& rank) {
  json.begin_array();
  for (const QueueLength& queue : rank.queues) {
    json.begin_object()
        .field("device", queue.device)
        .field("stream", queue.stream)
        .field("mean", queue.mean)
        .field("longest", queue.longest)
        .field("empty_us", us(queue.empty))
        .field("at_limit_us", us(queue.at_limit))
        .end_object();
  }
  json.end_array();
}

void write_json(JsonWriter& json, const RankAnalysis& rank, size_t top) {
  json.begin_object().field("file", rank.file).field("rank", rank.rank).field("gpu", rank.gpu);
  write_json(json.key("events"), rank.counts);
  json.field("device_work", rank.device_work)
      .field("linked", rank.linked)
      .field("linked_share",
             rank.device_work == 0 ? 0.0 : static_cast<double>(rank.linked) / static_cast<double>(rank.device_work))
      .field("communication_kernels", rank.communication_kernels);
  write_steps(json.key("steps"), rank);
  json.key("devices").begin_array();
  for (const DeviceBreakdown& device : rank.devices) write_json(json, device);
  json.end_array();
  write_usage(json.key("kernels"), rank.usage.kernels, top, true);
  write_usage(json.key("ops"), rank.usage.ops, top, false);
  write_usage(json.key("modules"), rank.usage.modules, top, false);
  json.field("modules_named", rank.has_modules).field("modules_annotated", rank.has_annotations);
  write_usage(json.key("phases"), rank.usage.phases, top, false);
  write_json(json.key("launches"), rank.launches);
  write_queues(json.key("queues"), rank);
  json.end_object();
}

void write_json(JsonWriter& json, const RankComparison& comparison) {
  json.begin_object().key("ranks").begin_array();
  for (const RankRow& row : comparison.ranks) {
    json.begin_object()
        .field("rank", row.rank)
        .field("file", row.file)
        .field("clock_offset_us", row.aligned ? std::optional(us(row.clock_offset)) : std::nullopt)
        .field("collectives", row.collectives)
        .field("arrived_last", row.arrived_last)
        .field("kept_waiting_us", us(row.kept_waiting))
        .field("compute_us", us(row.compute))
        .field("communication_us", us(row.communication))
        .field("step_ms", milliseconds(row.step))
        .end_object();
  }
  json.end_array().field("matched_collectives", comparison.matched).key("straggler");
  if (comparison.straggler >= 0) {
    json.value(comparison.ranks[static_cast<size_t>(comparison.straggler)].rank);
  } else {
    json.value(nullptr);
  }
  json.end_object();
}

void write_json(JsonWriter& json, const TracePath& path, size_t top) {
  json.begin_object()
      .field("simulated_us", us(path.simulated))
      .field("measured_us", us(path.measured))
      .field("tasks", path.tasks)
      .field("host_us", us(path.host))
      .field("gpu_us", us(path.gpu))
      .field("communication_us", us(path.communication))
      .field("waits_us", us(path.waits))
      .field("syncs_found", path.counts.syncs_found)
      .field("syncs_inferred", path.counts.syncs_inferred)
      .key("names")
      .begin_array();
  for (size_t i = 0; i < path.names.size() && i < top; ++i) {
    const PathShare& share = path.names[i];
    json.begin_object()
        .field("name", share.name)
        .field("kind", name_of(share.kind))
        .field("tasks", share.tasks)
        .field("us", us(share.time))
        .end_object();
  }
  json.end_array().key("levers").begin_array();
  for (const Lever& lever : path.levers) {
    json.begin_object()
        .field("name", lever.name)
        .field("kind", name_of(lever.kind))
        .field("on_path_us", us(lever.on_path))
        .field("saved_us_if_twice_as_fast", us(lever.saved))
        .end_object();
  }
  json.end_array().end_object();
}

void write_json(JsonWriter& json, const std::vector<ChangeRow>& rows, size_t top) {
  json.begin_array();
  for (size_t i = 0; i < rows.size() && i < top; ++i) {
    const ChangeRow& row = rows[i];
    json.begin_object()
        .field("name", row.name)
        .field("count_before", row.count_before)
        .field("count_after", row.count_after)
        .field("before_us", us(row.before))
        .field("after_us", us(row.after))
        .field("change_us", us(row.change()))
        .end_object();
  }
  json.end_array();
}

void usage_csv(int64_t rank, const char* section, const std::vector<UsageRow>& rows, std::string& out) {
  for (const UsageRow& row : rows) {
    out += fmt::format("{},{},{},{},{:.3f},{:.3f}\n", rank, section, csv_cell(row.name), row.count, us(row.gpu),
                       us(row.host));
  }
}

}  // namespace

std::string to_json(const TraceAnalysis& analysis, const TraceReportOptions& options) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.trace/1").key("files").begin_array();
  for (const RankAnalysis& rank : analysis.ranks) write_json(json, rank, options.top);
  json.end_array();
  write_json(json.key("ranks"), analysis.comparison);
  json.key("critical_path");
  if (analysis.path) {
    write_json(json, *analysis.path, options.top);
  } else {
    json.value(nullptr);
  }
  return json.field("warnings", warnings_of(analysis)).end_object().take();
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

std::string to_json(const TraceAnalysis& before, const TraceAnalysis& after, const TraceChanges& changes,
                    const TraceReportOptions& options) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.trace.compare/1")
      .key("before")
      .raw(to_json(before, options))
      .key("after")
      .raw(to_json(after, options))
      .key("changes")
      .begin_object()
      .field("step_before_ms", milliseconds(changes.step_before))
      .field("step_after_ms", milliseconds(changes.step_after));
  write_json(json.key("kernels"), changes.kernels, options.top);
  write_json(json.key("ops"), changes.ops, options.top);
  return json.end_object().end_object().take();
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
