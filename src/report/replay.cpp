#include "report/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

// The end of a path that fits: "…/hta/resnet50.json.gz".
std::string shortened(const std::string& path, size_t width) {
  return path.size() <= width ? path : "..." + path.substr(path.size() - width + 3);
}

}  // namespace

std::string replay_header() {
  return fmt::format("{:<48} {:>5} {:>12} {:>12} {:>8} {:>9} {:>7} {:>9}", "trace", "steps", "measured ms",
                     "simulated ms", "error", "tasks", "linked", "inferred");
}

std::string to_text(const ReplayRow& row) {
  std::string line =
      fmt::format("{:<48} {:>5} {:>12.3f} {:>12.3f} {:>6.2f} % {:>9} {:>5.1f} % {:>9}", shortened(row.file, 48),
                  row.iterations, row.measured_ms, row.simulated_ms, 100 * row.error(),
                  grouped(static_cast<int64_t>(row.tasks)), 100 * row.linked(), grouped(row.counts.syncs_inferred));
  if (row.files.size() > 1) {
    line += fmt::format("\n  {} ranks, {} collectives met by all, the worst ends {:.1f} us off", row.files.size(),
                        row.counts.rendezvous, row.worst_collective_us);
  }
  if (row.rank_clocks_us > 0) {
    line += fmt::format("\n  the ranks' clocks were up to {:.1f} us apart: aligned by the ends of collectives",
                        row.rank_clocks_us);
  }
  if (row.device_clock_us != 0) {
    line += fmt::format("\n  the device's clock contradicts the host's: {:+.1f} us added to it", row.device_clock_us);
  }
  return line;
}

std::string to_json(const ReplayRow& row) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.replay/1")
      .field("file", row.file)
      .field("measured_ms", row.measured_ms)
      .field("simulated_ms", row.simulated_ms)
      .field("error", row.error())
      .field("lags", row.own_lags ? "own" : "usual")
      .field("device_clock_us", row.device_clock_us)
      .field("tasks", row.tasks)
      .field("dependencies", row.dependencies)
      .field("linked", row.linked())
      .field("inferred_syncs", row.counts.syncs_inferred)
      .field("found_syncs", row.counts.syncs_found)
      .field("queue_waits", row.counts.queue_waits)
      .field("hand_overs", row.counts.hand_overs)
      .field("communications", row.counts.communications)
      .field("iterations_by", name_of(row.source))
      .field("measured_steps_ms", row.measured_steps_ms)
      .field("simulated_steps_ms", row.simulated_steps_ms)
      .field("ranks", row.files.size());
  if (row.files.size() > 1) {
    json.field("files", row.files)
        .field("collectives", row.counts.rendezvous)
        .field("rank_clocks_us", row.rank_clocks_us)
        .field("worst_collective_us", row.worst_collective_us);
  }
  return json.end_object().take();
}

std::string to_text(const std::vector<ReplayRow>& rows) {
  double mean = 0, worst = 0;
  for (const ReplayRow& row : rows) {
    mean += row.error() / static_cast<double>(rows.size());
    worst = std::max(worst, row.error());
  }
  std::string text;
  if (rows.size() > 1) {
    text = fmt::format("\n{} traces: mean error {:.2f} %, largest {:.2f} %\n", rows.size(), 100 * mean, 100 * worst);
  }
  if (!rows.empty() && rows.front().own_lags) {
    text +=
        "with each event's own lags: an error of 0 is so by construction, and shows only that no dependency is wrong\n";
  }
  return text;
}

}  // namespace forerun
