// Rows that a study or a training keeps in a file, a line of JSON each.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::learn {

// In their order; none where there is no file. `row_of` reads a line, Result<Row>(const std::string&); an Error of its is given the line's
// place.
template <class Row, class RowOf>
Result<std::vector<Row>> read_kept_rows(const std::string& path, const RowOf& row_of) {
  std::vector<Row> rows;
  std::ifstream file(path);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    Result<Row> row = row_of(line);
    if (!row) return Error{row.error().what, fmt::format("{}:{}", path, number), row.error().remedy};
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace forerun::learn
