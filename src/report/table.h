// Table: rows of text in aligned columns, for terminals. The first column is left-aligned, numbers right-aligned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forerun {

class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Columns named here are left-aligned, by index.
  void align_left(size_t column) { left_.push_back(column); }
  [[nodiscard]] std::string text(const std::string& indent = "  ") const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> left_ = {0};
};

// 0.123 as "12.3 %".
std::string percent(double share, int decimals = 1);
// 0.123 as "+12.3 %".
std::string signed_percent(double share);

// 1234567 as "1,234,567".
std::string grouped(int64_t number);
std::string times_text(int64_t count);  // "once", "1,200 times"

}  // namespace forerun
