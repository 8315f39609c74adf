// Columns: rows of a table as JSON, a list for each column: {"op": ["aten.mm", ...], "gpu_us": [1.5, ...]}.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_writer.h"

namespace forerun {

// Writes one column: what `of` gives of each row.
template <class Row, class Of>
void column(JsonWriter& json, std::string_view name, const std::vector<Row>& rows, const Of& of) {
  json.key(name).begin_array();
  for (const Row& row : rows) json.value(of(row));
  json.end_array();
}

}  // namespace forerun
