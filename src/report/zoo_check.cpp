#include "report/zoo_check.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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
  nlohmann::ordered_json misses = nlohmann::ordered_json::array();
  for (const OpMiss& miss : f.misses) {
    misses.push_back({{"op", miss.op}, {"count", miss.count}, {"gpu_us", miss.gpu_us}, {"example", miss.example}});
  }
  return nlohmann::ordered_json{
      {"family", f.family},
      {"records", f.records},
      {"by_time", f.has_times() ? nlohmann::ordered_json(f.by_time()) : nlohmann::ordered_json()},
      {"by_count", f.by_count()},
      {"ops", f.ops},
      {"surplus_ops", f.surplus_ops},
      {"misses", misses}}
      .dump();
}

}  // namespace forerun
