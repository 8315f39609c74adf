#include "lab/dataset/driple/fluid_communities.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "base/check.h"

namespace forerun::learn {
namespace {

constexpr uint32_t kNoCommunity = 0xFFFFFFFF;
constexpr double kSameDensity = 1e-9;

void shuffle_nodes(std::vector<uint32_t>& nodes, std::mt19937_64& random) {
  for (size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random() % i]);
}

class FluidRounds {
 public:
  FluidRounds(const Neighbours& graph, size_t k, uint64_t seed)
      : graph_(graph), random_(seed), community_(graph.size(), kNoCommunity), sizes_(k, 1), around_(k, 0.0) {
    order_.resize(graph.size());
    std::iota(order_.begin(), order_.end(), 0U);
    shuffle_nodes(order_, random_);
    for (uint32_t i = 0; i < k; ++i) community_[order_[i]] = i;
  }

  // Whether any node changed its community.
  bool round() {
    bool changed = false;
    shuffle_nodes(order_, random_);
    for (const uint32_t node : order_) changed = visit(node) || changed;
    return changed;
  }

  [[nodiscard]] const std::vector<uint32_t>& communities() const { return community_; }

 private:
  void feel(uint32_t node) {
    const uint32_t community = community_[node];
    if (community == kNoCommunity) return;
    if (around_[community] == 0) seen_.push_back(community);
    around_[community] += 1.0 / static_cast<double>(sizes_[community]);
  }

  bool visit(uint32_t node) {
    seen_.clear();
    feel(node);
    for (const uint32_t neighbour : graph_[node]) feel(neighbour);
    double most = 0;
    for (const uint32_t community : seen_) most = std::max(most, around_[community]);
    best_.clear();
    for (const uint32_t community : seen_) {
      if (around_[community] > most - kSameDensity) best_.push_back(community);
      around_[community] = 0;
    }
    const uint32_t own = community_[node];
    if (best_.empty() || std::find(best_.begin(), best_.end(), own) != best_.end()) return false;
    if (own != kNoCommunity && sizes_[own] == 1) return false;  // a community never dies out
    if (own != kNoCommunity) --sizes_[own];
    community_[node] = best_[random_() % best_.size()];
    ++sizes_[community_[node]];
    return true;
  }

  const Neighbours& graph_;
  std::mt19937_64 random_;
  std::vector<uint32_t> community_;
  std::vector<size_t> sizes_;
  std::vector<double> around_;  // density of each community around the node at hand; 0 between nodes
  std::vector<uint32_t> order_, seen_, best_;
};

}  // namespace

Neighbours neighbours_of(size_t nodes, const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  Neighbours graph(nodes);
  for (const auto& [a, b] : edges) {
    if (a == b) continue;
    graph[a].push_back(b);
    graph[b].push_back(a);
  }
  for (std::vector<uint32_t>& list : graph) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return graph;
}

std::vector<uint32_t> largest_component(const Neighbours& graph) {
  std::vector<bool> reached(graph.size(), false);
  std::vector<uint32_t> largest;
  for (uint32_t start = 0; start < graph.size(); ++start) {
    if (reached[start]) continue;
    std::vector<uint32_t> part = {start};
    reached[start] = true;
    for (size_t i = 0; i < part.size(); ++i) {
      for (const uint32_t next : graph[part[i]]) {
        if (!reached[next]) part.push_back(next);
        reached[next] = true;
      }
    }
    if (part.size() > largest.size()) largest = std::move(part);
  }
  std::sort(largest.begin(), largest.end());
  return largest;
}

std::vector<uint32_t> fluid_communities(const Neighbours& graph, size_t k, uint64_t seed, int most_rounds) {
  CHECK(k >= 1 && k <= graph.size(), "there are as many communities as asked for, and no more than nodes");
  FluidRounds rounds(graph, k, seed);
  for (int round = 0; round < most_rounds && rounds.round(); ++round) {
  }
  std::vector<uint32_t> communities = rounds.communities();
  // Nodes that nothing reached within the rounds stay with the first of their neighbours that has a community.
  for (bool again = true; again;) {
    again = false;
    for (size_t node = 0; node < graph.size(); ++node) {
      if (communities[node] != kNoCommunity) continue;
      for (const uint32_t neighbour : graph[node]) {
        if (communities[neighbour] == kNoCommunity) continue;
        communities[node] = communities[neighbour];
        again = true;
        break;
      }
    }
  }
  CHECK(std::find(communities.begin(), communities.end(), kNoCommunity) == communities.end(),
        "the graph of fluid communities is connected");
  return communities;
}

}  // namespace forerun::learn
