#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun {

std::string Table::text(const std::string& indent) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool left = std::find(left_.begin(), left_.end(), i) != left_.end();
      if (i > 0) line += "  ";
      line += left ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string grouped(int64_t number) {
  std::string digits = fmt::format("{}", number);
  const int64_t sign = number < 0 ? 1 : 0;
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > sign; i -= 3) {
    digits.insert(static_cast<size_t>(i), ",");
  }
  return digits;
}

std::string times_text(int64_t count) { return count == 1 ? "once" : grouped(count) + " times"; }

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string percent(double share, int decimals) { return fmt::format("{:.{}f} %", 100 * share, decimals); }

}  // namespace forerun
