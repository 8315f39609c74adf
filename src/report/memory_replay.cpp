#include "report/memory_replay.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/table.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

struct Total {
  size_t exact = 0;
  double mean_error = 0;
};

Total total_of(const std::vector<MemoryReplayRow>& rows, PeakPair MemoryReplayRow::*peak) {
  Total total;
  for (const MemoryReplayRow& row : rows) {
    total.exact += (row.*peak).exact() ? 1 : 0;
    total.mean_error += (row.*peak).error() / static_cast<double>(rows.size());
  }
  return total;
}

std::string outcome(const PeakPair& peak) {
  if (peak.exact()) return "exact";
  const int64_t difference = peak.simulated.value - peak.measured.value;
  const double share =
      peak.measured.value == 0 ? 0 : static_cast<double>(difference) / static_cast<double>(peak.measured.value);
  return fmt::format("{:+.3f} %", share * 100);
}

Json peak_json(const PeakPair& peak) {
  return {{"simulated", peak.simulated.value},
          {"measured", peak.measured.value},
          {"exact", peak.exact()},
          {"error", peak.error()}};
}

Json total_json(const Total& total) { return {{"exact", total.exact}, {"mean_error", total.mean_error}}; }

// Of the runs with true addresses: allocations, and how many got another address.
struct Placement {
  int64_t runs = 0, exact_runs = 0, allocations = 0, misplaced = 0;
};

Placement placement_of(const std::vector<MemoryReplayRow>& rows) {
  Placement sum;
  for (const MemoryReplayRow& row : rows) {
    if (!row.replay.true_addresses) continue;
    ++sum.runs;
    sum.exact_runs += row.replay.misplaced == 0 && row.replay.odd_segments == 0 ? 1 : 0;
    sum.allocations += row.replay.allocations;
    sum.misplaced += row.replay.misplaced;
  }
  return sum;
}

}  // namespace

std::string replay_heading() {
  return fmt::format("{:<36} {:>9} {:>10} {:>10} {:>10} {:>10}", "run", "events", "requested", "allocated", "reserved",
                     "misplaced");
}

std::string to_text(const MemoryReplayRow& row) {
  const std::string misplaced = row.replay.true_addresses ? grouped(row.replay.misplaced) : "-";
  return fmt::format("{:<36} {:>9} {:>10} {:>10} {:>10} {:>10}", row.id, grouped(row.replay.events),
                     outcome(row.requested), outcome(row.allocated), outcome(row.reserved), misplaced);
}

std::string to_json(const MemoryReplayRow& row) {
  Json json = {{"id", row.id},
               {"family", row.family},
               {"events", row.replay.events},
               {"requested", peak_json(row.requested)},
               {"allocated", peak_json(row.allocated)},
               {"reserved", peak_json(row.reserved)},
               {"retries", row.replay.figures.retries}};
  if (row.replay.true_addresses) {
    json["allocations"] = row.replay.allocations;
    json["misplaced"] = row.replay.misplaced;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const std::vector<MemoryReplayRow>& rows) {
  if (rows.empty()) return "no record has an allocator trace\n";
  Table table({"peak", "exact", "of", "share", "mean error"});
  const auto add = [&](const char* name, const Total& total) {
    table.add({name, grouped(static_cast<int64_t>(total.exact)), grouped(static_cast<int64_t>(rows.size())),
               fmt::format("{:.1f} %", 100.0 * static_cast<double>(total.exact) / static_cast<double>(rows.size())),
               fmt::format("{:.4f} %", total.mean_error * 100)});
  };
  add("requested", total_of(rows, &MemoryReplayRow::requested));
  add("allocated", total_of(rows, &MemoryReplayRow::allocated));
  add("reserved", total_of(rows, &MemoryReplayRow::reserved));
  std::string text = table.text();
  if (const Placement placed = placement_of(rows); placed.runs > 0) {
    text += fmt::format("  every block at its recorded address: {} of {} runs with addresses ({} of {} allocations)\n",
                        placed.exact_runs, placed.runs, grouped(placed.allocations - placed.misplaced),
                        grouped(placed.allocations));
  }
  return text;
}

std::string to_json(const std::vector<MemoryReplayRow>& rows) {
  const Placement placed = placement_of(rows);
  const Json json = {{"traces", rows.size()},
                     {"requested", total_json(total_of(rows, &MemoryReplayRow::requested))},
                     {"allocated", total_json(total_of(rows, &MemoryReplayRow::allocated))},
                     {"reserved", total_json(total_of(rows, &MemoryReplayRow::reserved))},
                     {"with_addresses", placed.runs},
                     {"placed_exactly", placed.exact_runs},
                     {"allocations", placed.allocations},
                     {"misplaced", placed.misplaced}};
  return json.dump();
}

}  // namespace forerun
