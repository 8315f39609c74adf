#include <fmt/format.h>

#include <algorithm>

#include "report/table.h"
#include "report/trace_report.h"

namespace forerun {
namespace {

std::string in_ms(Nanoseconds time) { return fmt::format("{:.3f}", milliseconds(time)); }
std::string in_us(Nanoseconds time) { return fmt::format("{:.1f}", microseconds(time)); }

double share_of(Nanoseconds part, Nanoseconds whole) {
  return whole.value == 0 ? 0.0 : static_cast<double>(part.value) / static_cast<double>(whole.value);
}

std::string percent_of(Nanoseconds part, Nanoseconds whole) { return percent(share_of(part, whole)); }

std::string counts_text(const RankAnalysis& rank) {
  const TraceCounts& counts = rank.counts;
  std::string text =
      fmt::format("  events read {}, kept {}, repaired {}, skipped {}{}\n", grouped(counts.read), grouped(counts.kept),
                  grouped(counts.repaired), grouped(counts.skipped), counts.truncated ? "; the file is truncated" : "");
  const double linked =
      rank.device_work == 0 ? 0.0 : static_cast<double>(rank.linked) / static_cast<double>(rank.device_work);
  text +=
      fmt::format("  device work {}, linked to a launch {} ({}); communication kernels {}\n", grouped(rank.device_work),
                  grouped(rank.linked), percent(linked), grouped(rank.communication_kernels));
  return text;
}

std::string steps_text(const RankAnalysis& rank) {
  if (rank.steps.empty()) return "";
  std::string list;
  for (size_t i = 0; i < rank.steps.size() && i < 8; ++i) list += (i == 0 ? "" : ", ") + in_ms(rank.steps[i]);
  if (rank.steps.size() > 8) list += ", ...";
  return fmt::format("  iterations {} (from {}): mean {} ms [{}]\n", rank.steps.size(), name_of(rank.step_source),
                     in_ms(mean_of(rank.steps)), list);
}

std::string device_text(const DeviceBreakdown& device) {
  std::string text = fmt::format("\n  GPU {}: {} ms from first to last work\n", device.device, in_ms(device.span));
  Table table({"time", "ms", "share", "not hidden ms"});
  const auto row = [&](const char* name, Nanoseconds time, const std::string& exposed) {
    table.add({name, in_ms(time), percent_of(time, device.span), exposed});
  };
  row("compute", device.compute, "");
  row("communication", device.communication, in_ms(device.exposed_communication));
  row("memory copy", device.copy, in_ms(device.exposed_copy));
  row("idle", device.idle, "");
  row("  host wait", device.causes.host_wait, "");
  row("  kernel wait", device.causes.kernel_wait, "");
  row("  other", device.causes.other, "");
  text += table.text("    ");
  if (device.communication.value > 0) {
    text += fmt::format("    communication hidden behind computation: {:.2f} %\n", 100 * device.overlap_share());
  }
  if (device.streams.size() > 1) {
    Table streams({"stream", "events", "busy ms", "host wait ms", "kernel wait ms", "other ms"});
    for (const StreamUse& use : device.streams) {
      streams.add({fmt::format("{}", use.stream), grouped(use.events), in_ms(use.busy), in_ms(use.idle.host_wait),
                   in_ms(use.idle.kernel_wait), in_ms(use.idle.other)});
    }
    text += "\n" + streams.text("    ");
  }
  return text;
}

std::string usage_text(const char* title, const std::vector<UsageRow>& rows, size_t top, bool kernels) {
  if (rows.empty() || top == 0) return "";
  Nanoseconds gpu;
  for (const UsageRow& row : rows) gpu += row.gpu;
  Table table(kernels ? std::vector<std::string>{title, "count", "GPU ms", "share", "mean us", "longest us"}
                      : std::vector<std::string>{title, "count", "GPU ms", "share", "host ms"});
  for (size_t i = 0; i < rows.size() && i < top; ++i) {
    const UsageRow& row = rows[i];
    std::vector<std::string> cells = {short_name(row.name, 60), grouped(row.count), in_ms(row.gpu),
                                      percent_of(row.gpu, gpu)};
    if (kernels) {
      cells.push_back(in_us(Nanoseconds(row.gpu.value / std::max<int64_t>(row.count, 1))));
      cells.push_back(in_us(row.longest));
    } else {
      cells.push_back(in_ms(row.host));
    }
    table.add(std::move(cells));
  }
  std::string text = "\n" + table.text();
  if (rows.size() > top) text += fmt::format("  ... and {} more\n", grouped(static_cast<int64_t>(rows.size() - top)));
  return text;
}

std::string launches_text(const RankAnalysis& rank) {
  const LaunchStatistics& l = rank.launches;
  if (l.launches == 0) return "";
  std::string text = fmt::format(
      "\n  launches {} by {} calls ({} share a call, as in CUDA graphs)\n"
      "    call: median {} us, p90 {} us, {} of 50 us or more; {} ms in all\n"
      "    from the call's end to the work's start: median {} us, p90 {} us, longest {} us; {} of 100 us or more\n"
      "    shorter on the GPU than their call on the host: {} ({})\n",
      grouped(l.launches), grouped(l.calls), grouped(l.graph_kernels), in_us(l.call_median), in_us(l.call_p90),
      grouped(l.slow_calls), in_ms(l.call_total), in_us(l.delay_median), in_us(l.delay_p90), in_us(l.delay_longest),
      grouped(l.late_starts), grouped(l.short_work),
      percent(static_cast<double>(l.short_work) / static_cast<double>(l.launches)));
  Table table({"queue of stream", "mean", "longest", "empty ms", "1024 or more ms"});
  for (const QueueLength& queue : rank.queues) {
    if (queue.longest == 0) continue;
    table.add({fmt::format("{} on GPU {}", queue.stream, queue.device), fmt::format("{:.1f}", queue.mean),
               grouped(queue.longest), in_ms(queue.empty), in_ms(queue.at_limit)});
  }
  return text + table.text("    ");
}

std::string ranks_text(const RankComparison& comparison) {
  if (comparison.ranks.size() < 2) return "";
  std::string text = fmt::format("\nranks: {}, collectives found on all of them: {}\n", comparison.ranks.size(),
                                 grouped(comparison.matched));
  Table table(
      {"rank", "clock offset us", "step ms", "compute ms", "communication ms", "arrived last", "kept waiting ms"});
  for (const RankRow& row : comparison.ranks) {
    table.add({row.rank < 0 ? row.file : fmt::format("{}", row.rank), row.aligned ? in_us(row.clock_offset) : "unknown",
               in_ms(row.step), in_ms(row.compute), in_ms(row.communication), grouped(row.arrived_last),
               in_ms(row.kept_waiting)});
  }
  text += table.text();
  if (comparison.straggler >= 0) {
    const RankRow& row = comparison.ranks[static_cast<size_t>(comparison.straggler)];
    text += fmt::format("  straggler: rank {} arrives last at {} of {} collectives\n", row.rank,
                        grouped(row.arrived_last), grouped(comparison.matched));
  }
  return text;
}

std::string path_text(const TracePath& path, size_t top) {
  std::string text = fmt::format("\ncritical path: {} tasks, {} ms simulated ({} ms measured)\n", grouped(path.tasks),
                                 in_ms(path.simulated), in_ms(path.measured));
  text += fmt::format("  host {} ms, GPU {} ms, communication {} ms, waits and gaps {} ms\n", in_ms(path.host),
                      in_ms(path.gpu), in_ms(path.communication),
                      in_ms(path.simulated - path.host - path.gpu - path.communication));
  text +=
      fmt::format("  syncs found {}, inferred {}; launches held by a full queue {}\n", grouped(path.counts.syncs_found),
                  grouped(path.counts.syncs_inferred), grouped(path.counts.queue_waits));
  Table names({"on the path", "kind", "tasks", "ms", "share"});
  names.align_left(1);
  for (size_t i = 0; i < path.names.size() && i < top; ++i) {
    const PathShare& share = path.names[i];
    names.add({short_name(share.name, 50), std::string(name_of(share.kind)), grouped(share.tasks), in_ms(share.time),
               percent_of(share.time, path.simulated)});
  }
  text += "\n" + names.text();
  Table levers({"if twice as fast", "kind", "saves ms", "share"});
  levers.align_left(1);
  for (const Lever& lever : path.levers) {
    levers.add({short_name(lever.name, 50), std::string(name_of(lever.kind)), in_ms(lever.saved),
                percent_of(lever.saved, path.simulated)});
  }
  return path.levers.empty() ? text : text + "\n" + levers.text();
}

std::string rank_text(const RankAnalysis& rank, const TraceReportOptions& options, bool lists) {
  std::string text = fmt::format("{}{}{}\n", rank.file, rank.rank < 0 ? "" : fmt::format(" (rank {})", rank.rank),
                                 rank.gpu.empty() ? "" : ", " + rank.gpu);
  text += counts_text(rank) + steps_text(rank);
  for (const DeviceBreakdown& device : rank.devices) text += device_text(device);
  if (!lists) return text + "\n";
  text += usage_text("kernel", rank.usage.kernels, options.top, true);
  text += usage_text("op", rank.usage.ops, options.top, false);
  const char* layer = rank.has_modules       ? "module"
                      : rank.has_annotations ? "layer (by annotation, the file names no modules)"
                                             : "layer (by op, the file names no modules)";
  text += usage_text(layer, rank.usage.modules, options.top, false);
  text += usage_text("phase", rank.usage.phases, 8, false);
  return text + launches_text(rank);
}

}  // namespace

std::string short_name(const std::string& name, size_t most) {
  std::string text = name;
  for (const std::string_view prefix : {"void ", "at::native::", "(anonymous namespace)::"}) {
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) text.erase(at, prefix.size());
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  if (text.size() <= most) return text;
  size_t cut = most - 3;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return text.substr(0, cut) + "...";
}

std::vector<std::string> warnings_of(const TraceAnalysis& analysis) {
  std::vector<std::string> warnings;
  for (const RankAnalysis& rank : analysis.ranks) {
    const TraceCounts& counts = rank.counts;
    if (!counts.first_problem.empty()) {
      warnings.push_back(fmt::format("{}: {} events repaired, {} skipped{}; first: {}", rank.file, counts.repaired,
                                     counts.skipped, counts.truncated ? ", the file is truncated" : "",
                                     counts.first_problem));
    }
    if (rank.names_process_group && rank.communication_kernels == 0) {
      warnings.push_back(fmt::format("{}: names a process group, but no kernel of communication was found", rank.file));
    }
    if (rank.device_shift != Nanoseconds(0)) {
      warnings.push_back(
          fmt::format("{}: the device's clock contradicts the host's (work begins before its launch, or "
                      "outlasts its sync): {:+.3f} ms added to it",
                      rank.file, milliseconds(rank.device_shift)));
    }
    if (rank.device_work == 0) {
      warnings.push_back(fmt::format("{}: no work on a GPU was recorded", rank.file));
    } else if (4 * rank.linked < 3 * rank.device_work) {
      warnings.push_back(
          fmt::format("{}: only {} of {} kernels and copies have their launch in the trace: idle causes, "
                      "ops and modules rest on those",
                      rank.file, rank.linked, rank.device_work));
    }
  }
  return warnings;
}

std::string to_text(const TraceAnalysis& analysis, const TraceReportOptions& options) {
  std::string text;
  // Of many ranks the lists of the first will do; --json has all.
  for (size_t r = 0; r < analysis.ranks.size(); ++r) text += rank_text(analysis.ranks[r], options, r == 0);
  text += ranks_text(analysis.comparison);
  if (analysis.path) text += path_text(*analysis.path, options.top);
  if (!analysis.no_path.empty()) text += "\nno critical path: " + analysis.no_path + "\n";
  return text;
}

std::string to_text(const TraceChanges& changes, const TraceReportOptions& options) {
  std::string text = fmt::format("\nmean iteration {} ms -> {} ms ({:+.1f} %)\n", in_ms(changes.step_before),
                                 in_ms(changes.step_after),
                                 100 * share_of(changes.step_after - changes.step_before, changes.step_before));
  const auto list = [&](const char* title, const std::vector<ChangeRow>& rows) {
    Table table({title, "count", "", "ms", "", "change ms"});
    for (size_t i = 0; i < rows.size() && i < options.top; ++i) {
      const ChangeRow& row = rows[i];
      table.add({short_name(row.name, 60), grouped(row.count_before), grouped(row.count_after), in_ms(row.before),
                 in_ms(row.after), fmt::format("{:+.3f}", milliseconds(row.change()))});
    }
    text += "\n" + table.text();
  };
  list("kernel, GPU time", changes.kernels);
  list("op, host time", changes.ops);
  return text;
}

}  // namespace forerun
