// NodeMap: which GPUs of a pool with nodes and racks are free, and where a gang goes.
//
// A gang goes to the rack with the least room that still takes it whole, and there to as few nodes as possible: on one
// node the one with the least room that suffices, else the emptiest nodes first. Where no rack takes it whole it goes to
// the emptiest nodes of all. Any free GPUs will do in the end: placement changes a job's speed, never whether it fits.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/machine.h"

namespace forerun::cluster {

struct NodeShare {
  int32_t node = 0;
  int32_t gpus = 0;
};

struct GangPlace {
  std::vector<NodeShare> nodes;
  int32_t racks = 0;
};

class NodeMap {
 public:
  explicit NodeMap(const GpuPool& pool);

  // Takes so many free GPUs; there must be as many.
  GangPlace take(int32_t gpus);
  void give_back(const GangPlace& place);

  // A node that fails has its free GPUs taken out; jobs on it must have given theirs back.
  void fail(int32_t node);
  void repair(int32_t node);
  [[nodiscard]] const std::vector<int32_t>& up() const { return up_; }  // nodes that work, ascending
  [[nodiscard]] int32_t size(int32_t node) const { return size_[static_cast<size_t>(node)]; }

 private:
  [[nodiscard]] int32_t rack_of(int32_t node) const { return node / nodes_per_rack_; }
  // The nodes a gang of this size takes in rack `rack`, or in all where it is -1.
  [[nodiscard]] GangPlace choose(int32_t gpus, int32_t rack) const;

  int32_t nodes_per_rack_;
  std::vector<int32_t> size_;       // by node
  std::vector<int32_t> free_;       // by node
  std::vector<int32_t> rack_free_;  // by rack
  std::vector<int32_t> up_;
};

// The fewest nodes that so many GPUs of a pool can be on.
int32_t fewest_nodes(const GpuPool& pool, int32_t gpus);

}  // namespace forerun::cluster
