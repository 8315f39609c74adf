#include "lab/accuracy/driple_sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/table.h"

namespace forerun {
namespace {

std::string share_of(int64_t count, int64_t all) {
  return all > 0 ? percent(static_cast<double>(count) / static_cast<double>(all)) : "-";
}

std::string pattern_table(const DripleSensitivity& sensitivity) {
  Table table({"pattern", "I: idle", "BIB: bursts and idles", "B: burst"});
  for (const PatternCounts& row : sensitivity.patterns) {
    table.add({row.resource, share_of(row.idle, row.all()), share_of(row.alternating, row.all()),
               share_of(row.burst, row.all())});
  }
  return table.text();
}

std::string spread_table(const DripleSensitivity& sensitivity) {
  Table table({"over workloads", "", "10 %", "median", "90 %", "90 % / 10 %"});
  table.align_left(1);
  for (const FigureSpread& row : sensitivity.spreads) {
    table.add({row.resource, row.figure, fmt::format("{:.1f}", row.low), fmt::format("{:.1f}", row.middle),
               fmt::format("{:.1f}", row.high), row.low > 0 ? fmt::format("{:.1f}x", row.high / row.low) : "-"});
  }
  return table.text();
}

std::string setting_table(const DripleSensitivity& sensitivity) {
  Table table({"over settings", "GPU idle ms", "burst ms", "amount %", "memory burst ms", "amount %", "send idle ms",
               "burst ms", "MB/s", "receive burst ms", "MB/s"});
  for (const SettingFigures& row : sensitivity.settings) {
    std::vector<std::string> cells = {row.setting};
    for (const size_t figure : {0, 1, 2, 4, 5, 6, 7, 8, 10, 11}) {
      cells.push_back(fmt::format("{:.1f}", row.figures[figure]));
    }
    table.add(cells);
  }
  return table.text();
}

}  // namespace

std::string to_text(const DripleSensitivity& sensitivity) {
  return fmt::format(
      "Sensitivity: patterns of {} windows, figures (ms, percent, MB/s) of {} workloads measured in {}\n{}\n{}\n"
      "Sensitivity to the setting: {}, simulated\n{}",
      grouped(sensitivity.windows), grouped(sensitivity.workloads), sensitivity.setting, pattern_table(sensitivity),
      spread_table(sensitivity), sensitivity.workload, setting_table(sensitivity));
}

std::string to_json(const DripleSensitivity& sensitivity) {
  nlohmann::ordered_json json = {{"setting", sensitivity.setting},
                                 {"windows", sensitivity.windows},
                                 {"workloads", sensitivity.workloads},
                                 {"patterns", nlohmann::ordered_json::object()},
                                 {"spreads", nlohmann::ordered_json::array()},
                                 {"simulated_workload", sensitivity.workload},
                                 {"settings", nlohmann::ordered_json::object()}};
  for (const PatternCounts& row : sensitivity.patterns) {
    json["patterns"][row.resource] = {{"I", row.idle}, {"BIB", row.alternating}, {"B", row.burst}};
  }
  for (const FigureSpread& row : sensitivity.spreads) {
    json["spreads"].push_back({{"resource", row.resource},
                               {"figure", row.figure},
                               {"low", row.low},
                               {"median", row.middle},
                               {"high", row.high}});
  }
  for (const SettingFigures& row : sensitivity.settings) json["settings"][row.setting] = row.figures;
  return json.dump();
}

}  // namespace forerun
