#include "graph/graph.h"

#include <fmt/format.h>

namespace forerun {

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::update: return "update";
  }
  return "?";
}

int64_t Graph::element_count(TensorId id) const {
  int64_t count = 1;
  for (const int64_t extent : shape(id)) count *= extent;
  return count;
}

Bytes Graph::bytes_of(TensorId id) const { return Bytes(element_count(id) * size_of(tensor(id).dtype)); }

}  // namespace forerun
