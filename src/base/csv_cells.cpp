#include "base/csv_cells.h"

#include <algorithm>

namespace forerun {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed_cell(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  return parse_cell(std::string(text), value);
}

}  // namespace

size_t split_csv(std::string_view line, char separator, std::vector<std::string>& cells) {
  size_t count = 0;
  for (size_t at = 0;; ++at) {
    if (count == cells.size()) cells.emplace_back();
    std::string& cell = cells[count++];
    cell.clear();
    while (at < line.size() && line[at] == ' ') ++at;
    if (at < line.size() && line[at] == '"') {
      for (++at; at < line.size(); ++at) {
        if (line[at] == '"') {
          if (at + 1 >= line.size() || line[at + 1] != '"') break;
          ++at;
        }
        cell += line[at];
      }
      at = std::min(line.find(separator, at), line.size());
    } else {
      const size_t end = std::min(line.find(separator, at), line.size());
      cell = trimmed_cell(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) return count;
  }
}

std::vector<std::string> csv_cells(std::string_view line) {
  std::vector<std::string> cells;
  split_csv(line, ',', cells);
  return cells;
}

std::string csv_quoted(std::string_view text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string_view::npos;
  if (plain && trimmed_cell(text).size() == text.size()) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_cell(std::string_view text) {
  const bool runs = !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return csv_quoted(runs && !is_number(text) ? "'" + std::string(text) : std::string(text));
}

}  // namespace forerun
