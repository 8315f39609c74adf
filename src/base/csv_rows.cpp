#include "base/csv_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/csv_cells.h"

namespace forerun {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

}  // namespace

Status CsvRows::begin() {
  if (!has_heading_) return {};
  const auto more = next();
  if (!more) return more.error();
  if (!*more) return Error{"the file is empty", name(), "give a table with a heading"};
  if (cells_.front().starts_with("\xef\xbb\xbf")) cells_.front().erase(0, 3);
  heading_.assign(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(count_));
  for (size_t i = 0; i < heading_.size(); ++i) {
    if (heading_[i].empty() || *column(heading_[i]) == i) continue;
    return Error{fmt::format("the heading has the column '{}' twice", heading_[i]), name() + ":1",
                 "take one of the two out"};
  }
  return {};
}

Result<bool> CsvRows::next() {
  while (true) {
    auto line = reader_.next();
    if (!line) return line.error();
    if (!line->has_value()) return false;
    if (is_blank(**line)) continue;
    count_ = split_csv(**line, separator_, cells_);
    return true;
  }
}

std::optional<size_t> CsvRows::column(std::string_view wanted) const {
  for (size_t i = 0; i < heading_.size(); ++i) {
    if (lower(heading_[i]) == lower(wanted)) return i;
  }
  return std::nullopt;
}

Result<size_t> CsvRows::need(std::string_view wanted) const {
  if (const auto found = column(wanted)) return *found;
  return Error{fmt::format("the heading has no column '{}'", wanted), name() + ":1",
               fmt::format("it has {}; is the format the right one?", fmt::join(heading_, ", "))};
}

const std::string& CsvRows::cell(size_t column) const {
  static const std::string kNone;
  return column < count_ ? cells_[column] : kNone;
}

const std::string& CsvRows::cell(std::optional<size_t> column) const { return cell(column.value_or(count_)); }

}  // namespace forerun
