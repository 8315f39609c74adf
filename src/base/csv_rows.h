// CsvRows: the rows of a table in text with a heading, cells found by the name of their column.
//
// Cells are parted by one character (',', '\t', '|') as split_csv (base/csv_cells.h) does it. A row with more or
// fewer cells than the heading is the row's fault, which the caller learns from `complete()`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_reader.h"

namespace forerun {

class CsvRows {
 public:
  // `heading` false: columns are named "1", "2" and so on, and rows may differ in length.
  CsvRows(LineReader reader, char separator, bool heading = true)
      : reader_(std::move(reader)), separator_(separator), has_heading_(heading) {}

  // Reads the heading; an empty file and two columns of one name are Errors.
  Status begin();
  // The next row that is not blank; false at the end of the file.
  Result<bool> next();

  [[nodiscard]] const std::vector<std::string>& heading() const { return heading_; }
  [[nodiscard]] std::optional<size_t> column(std::string_view name) const;  // without case
  // The first of these columns that is there; an Error that names them and what is there instead.
  [[nodiscard]] Result<size_t> need(std::string_view name) const;

  [[nodiscard]] bool complete() const { return count_ == heading_.size(); }
  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] const std::string& cell(size_t column) const;
  [[nodiscard]] const std::string& cell(std::optional<size_t> column) const;  // empty where there is no such column
  [[nodiscard]] int64_t line() const { return reader_.line_number(); }
  [[nodiscard]] const std::string& name() const { return reader_.name(); }

 private:
  LineReader reader_;
  char separator_;
  bool has_heading_;
  std::vector<std::string> heading_;
  std::vector<std::string> cells_;
  size_t count_ = 0;  // cells of this row
};

}  // namespace forerun
