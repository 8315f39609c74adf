#include "report/zoo_check.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string misses_text(const char* heading, const std::vector<OpMiss>& misses) {
  std::string out;
  for (const OpMiss& miss : misses) {
    const std::string time = miss.gpu_us > 0 ? fmt::format(", {:.0f} us GPU time", miss.gpu_us) : "";
    out += fmt::format("    {} {} x{}{}, as in {}\n", heading, miss.op, miss.count, time, miss.example);
  }
  return out;
}

}  // namespace

std::string to_text(const ZooCheck& check) {
  Table table({"family", "records", "captured ops", "matched by GPU time", "by count", "derived too many"});
  for (const FamilyCheck& f : check.families) {
    table.add({f.family, fmt::format("{}", f.records), fmt::format("{}", f.ops),
               f.has_times() ? fmt::format("{:.3f} %", 100 * f.by_time()) : "not measured",
               fmt::format("{:.3f} %", 100 * f.by_count()), fmt::format("{}", f.surplus_ops)});
  }
  std::string out =
      "Captured ops that have a derived counterpart of the same name, phase, types and shapes\n" + table.text();
  for (const FamilyCheck& f : check.families) {
    if (f.misses.empty() && f.surplus.empty()) continue;
    out += "  " + f.family + "\n" + misses_text("missed", f.misses) + misses_text("too many", f.surplus);
  }
  for (const std::string& problem : check.problems) out += "  not compared: " + problem + "\n";
  return out;
}

std::string to_json(const FamilyCheck& f) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.zoo.check/1")
      .field("family", f.family)
      .field("records", f.records)
      .field("by_time", f.has_times() ? std::optional(f.by_time()) : std::nullopt)
      .field("by_count", f.by_count())
      .field("ops", f.ops)
      .field("surplus_ops", f.surplus_ops)
      .key("misses")
      .begin_array();
  for (const OpMiss& miss : f.misses) {
    json.begin_object()
        .field("op", miss.op)
        .field("count", miss.count)
        .field("gpu_us", miss.gpu_us)
        .field("example", miss.example)
        .end_object();
  }
  return json.end_array().end_object().take();
}

}  // namespace forerun
