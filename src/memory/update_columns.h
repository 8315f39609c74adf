// Which storages of the optimizer's update belong together: a parameter, its gradient, its state, what the update makes of
// them on the way. Ops over lists (foreach, fused) tie the entries of one position, other ops tie what they touch.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace forerun {

class UpdateColumns {
 public:
  explicit UpdateColumns(const Graph& graph);

  // The column that a storage belongs to: a number, the same for all of a column.
  [[nodiscard]] uint32_t column(StorageId storage) const;

 private:
  void tie(uint32_t a, uint32_t b);
  std::vector<uint32_t> parents_;  // by storage
};

// A gradient: made in the backward phase, read by the update.
struct Gradient {
  StorageId storage;
  size_t made = 0;  // the last op of the backward phase that gives it out
};

// In the order in which they are made.
std::vector<Gradient> gradients_of(const Graph& graph);

}  // namespace forerun
