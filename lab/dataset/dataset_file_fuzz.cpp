// Fuzzes the reader of data sets in binary form. What is read must hold together.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "lab/dataset/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun::learn;
  const auto set = DataSet::from_bytes({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!set.ok()) {
    CHECK(!set.error().what.empty() && !set.error().where.empty(), "an error without what or where");
    return 0;
  }
  for (const OpRow& row : set->rows()) {
    CHECK(!name_of(row.dtype).empty(), "a type without a name");
    static_cast<void>(set->name_of_row(row));
  }
  for (const Example& example : set->examples()) {
    for (const uint32_t op : example.ops) CHECK(op < set->rows().size(), "an op without its row");
    for (const DataEdge& edge : example.edges) {
      CHECK(edge.source < edge.target && edge.target < example.ops.size(), "an edge that leads nowhere");
    }
  }
  return 0;
}
