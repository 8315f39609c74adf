#include "compile/max_flow.h"

#include <algorithm>

namespace forerun::compile {

void MaxFlow::add_edge(uint32_t from, uint32_t to, int64_t capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<uint32_t>(edges_.size() - 1);
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<uint32_t>(edges_.size() - 1);
}

bool MaxFlow::level_from(uint32_t source, uint32_t sink) {
  level_.assign(first_.size(), kNone);
  std::vector<uint32_t> queue = {source};
  level_[source] = 0;
  for (size_t at = 0; at < queue.size(); ++at) {
    const uint32_t point = queue[at];
    for (uint32_t edge = first_[point]; edge != kNone; edge = edges_[edge].next) {
      const uint32_t to = edges_[edge].to;
      if (edges_[edge].left <= 0 || level_[to] != kNone) continue;
      level_[to] = level_[point] + 1;
      queue.push_back(to);
    }
  }
  return level_[sink] != kNone;
}

// One more path along the levels, or nothing. Walks without recursion: chains are as long as models are deep.
int64_t MaxFlow::pushed(uint32_t source, uint32_t sink) {
  std::vector<uint32_t> path;
  uint32_t point = source;
  while (point != sink) {
    uint32_t& edge = current_[point];
    while (edge != kNone && (edges_[edge].left <= 0 || level_[edges_[edge].to] != level_[point] + 1)) {
      edge = edges_[edge].next;
    }
    if (edge != kNone) {
      path.push_back(edge);
      point = edges_[edge].to;
      continue;
    }
    if (path.empty()) return 0;
    level_[point] = kNone;  // a dead end
    point = edges_[path.back() ^ 1U].to;
    path.pop_back();
  }
  int64_t amount = kEndless;
  for (const uint32_t edge : path) amount = std::min(amount, edges_[edge].left);
  for (const uint32_t edge : path) {
    edges_[edge].left -= amount;
    edges_[edge ^ 1U].left += amount;
  }
  return amount;
}

std::vector<bool> MaxFlow::reached_at_most_flow(uint32_t source, uint32_t sink) {
  while (flow_ < kEndless && level_from(source, sink)) {
    current_ = first_;
    while (const int64_t amount = pushed(source, sink)) {
      flow_ = std::min(flow_ + amount, kEndless);
      if (flow_ >= kEndless) break;
    }
  }
  std::vector<bool> reached(first_.size());
  for (size_t point = 0; point < reached.size(); ++point) reached[point] = level_[point] != kNone;
  return reached;
}

}  // namespace forerun::compile
