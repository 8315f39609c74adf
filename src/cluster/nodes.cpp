#include "cluster/nodes.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace forerun::cluster {
namespace {

size_t at(int32_t index) { return static_cast<size_t>(index); }

}  // namespace

NodeMap::NodeMap(const GpuPool& pool) : nodes_per_rack_(pool.nodes_per_rack > 0 ? pool.nodes_per_rack : pool.nodes()) {
  for (int32_t left = pool.gpus; left > 0; left -= pool.gpus_per_node) {
    size_.push_back(std::min(left, pool.gpus_per_node));
  }
  free_ = size_;
  up_.resize(size_.size());
  std::iota(up_.begin(), up_.end(), 0);
  rack_free_.assign((size_.size() + at(nodes_per_rack_) - 1) / at(nodes_per_rack_), 0);
  for (int32_t node = 0; node < static_cast<int32_t>(size_.size()); ++node) {
    rack_free_[at(rack_of(node))] += free_[at(node)];
  }
}

GangPlace NodeMap::choose(int32_t gpus, int32_t rack) const {
  const int32_t first = rack < 0 ? 0 : rack * nodes_per_rack_;
  const auto count = static_cast<int32_t>(free_.size());
  const int32_t last = rack < 0 ? count : std::min(first + nodes_per_rack_, count);
  int32_t tightest = -1;
  for (int32_t node = first; node < last; ++node) {
    if (free_[at(node)] < gpus) continue;
    if (tightest < 0 || free_[at(node)] < free_[at(tightest)]) tightest = node;
  }
  if (tightest >= 0) return {{{tightest, gpus}}, 1};
  std::vector<int32_t> order;
  for (int32_t node = first; node < last; ++node) {
    if (free_[at(node)] > 0) order.push_back(node);
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return free_[at(a)] > free_[at(b)]; });
  GangPlace place;
  std::vector<bool> seen(rack_free_.size(), false);
  for (size_t i = 0; i < order.size() && gpus > 0; ++i) {
    const int32_t node = order[i];
    const int32_t share = std::min(free_[at(node)], gpus);
    place.nodes.push_back({node, share});
    gpus -= share;
    if (!seen[at(rack_of(node))]) ++place.racks;
    seen[at(rack_of(node))] = true;
  }
  CHECK(gpus == 0, "fewer GPUs are free on the nodes than were asked for");
  return place;
}

GangPlace NodeMap::take(int32_t gpus) {
  int32_t best = -1;
  for (int32_t rack = 0; rack < static_cast<int32_t>(rack_free_.size()); ++rack) {
    if (rack_free_[at(rack)] < gpus) continue;
    if (best < 0 || rack_free_[at(rack)] < rack_free_[at(best)]) best = rack;
  }
  GangPlace place = choose(gpus, best);
  for (const NodeShare& share : place.nodes) {
    free_[at(share.node)] -= share.gpus;
    rack_free_[at(rack_of(share.node))] -= share.gpus;
  }
  return place;
}

void NodeMap::give_back(const GangPlace& place) {
  for (const NodeShare& share : place.nodes) {
    free_[at(share.node)] += share.gpus;
    rack_free_[at(rack_of(share.node))] += share.gpus;
  }
}

void NodeMap::fail(int32_t node) {
  CHECK(free_[at(node)] == size_[at(node)], "a node failed under a running job");
  rack_free_[at(rack_of(node))] -= free_[at(node)];
  free_[at(node)] = 0;
  up_.erase(std::lower_bound(up_.begin(), up_.end(), node));
}

void NodeMap::repair(int32_t node) {
  free_[at(node)] = size_[at(node)];
  rack_free_[at(rack_of(node))] += size_[at(node)];
  up_.insert(std::lower_bound(up_.begin(), up_.end(), node), node);
}

int32_t fewest_nodes(const GpuPool& pool, int32_t gpus) {
  return pool.gpus_per_node == 0 ? 1 : (gpus + pool.gpus_per_node - 1) / pool.gpus_per_node;
}

}  // namespace forerun::cluster
