// Cells of comma-separated values: a line parted into cells, the number in a cell, and cells as they are written.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

// Parts a line into cells, which are trimmed and may be quoted: "a ""b"", c" is one cell, a "b", c. Returns how many there
// are; strings of the row before are used again, and those beyond the last cell keep what they had.
size_t split_csv(std::string_view line, char separator, std::vector<std::string>& cells);

std::vector<std::string> csv_cells(std::string_view line);

// False where the cell is not one number as a whole.
template <class Number>
bool parse_cell(const std::string& cell, Number& value) {
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size();
}

// A cell that reads back as the same text: quoted where it holds a comma, a quote, a line break, or blanks at its ends.
std::string csv_quoted(std::string_view text);

// A cell for people's eyes, who open tables in a spreadsheet: text that one would run as a formula (it begins with = + - @,
// a tab or a carriage return) gets an apostrophe before it. Numbers stay numbers.
std::string csv_cell(std::string_view text);

}  // namespace forerun
