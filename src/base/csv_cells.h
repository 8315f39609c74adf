// The cells of a line of comma-separated values, and the number in a cell.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

// A cell with commas in it is quoted; quotes and carriage returns are left out.
std::vector<std::string> csv_cells(std::string_view line);

// False where the cell is not one number as a whole.
template <class Number>
bool parse_cell(const std::string& cell, Number& value) {
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size();
}

}  // namespace forerun
