#include "report/memory_replay.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

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

void write_json(JsonWriter& json, const PeakPair& peak) {
  json.begin_object()
      .field("simulated", peak.simulated.value)
      .field("measured", peak.measured.value)
      .field("exact", peak.exact())
      .field("error", peak.error())
      .end_object();
}

void write_json(JsonWriter& json, const Total& total) {
  json.begin_object().field("exact", total.exact).field("mean_error", total.mean_error).end_object();
}

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
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.memory.replay/1")
      .field("id", row.id)
      .field("family", row.family)
      .field("events", row.replay.events);
  write_json(json.key("requested"), row.requested);
  write_json(json.key("allocated"), row.allocated);
  write_json(json.key("reserved"), row.reserved);
  json.field("retries", row.replay.figures.retries);
  if (row.replay.true_addresses) {
    json.field("allocations", row.replay.allocations).field("misplaced", row.replay.misplaced);
  }
  return json.end_object().take();
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
  JsonWriter json;
  json.begin_object().field("schema", "forerun.memory.replay/1").field("traces", rows.size());
  write_json(json.key("requested"), total_of(rows, &MemoryReplayRow::requested));
  write_json(json.key("allocated"), total_of(rows, &MemoryReplayRow::allocated));
  write_json(json.key("reserved"), total_of(rows, &MemoryReplayRow::reserved));
  json.field("with_addresses", placed.runs)
      .field("placed_exactly", placed.exact_runs)
      .field("allocations", placed.allocations)
      .field("misplaced", placed.misplaced);
  return json.end_object().take();
}

}  // namespace forerun
