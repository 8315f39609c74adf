// MaxFlow: the largest flow from a source to a sink, and the smallest cut that goes with it (Dinic's algorithm).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace forerun::compile {

class MaxFlow {
 public:
  static constexpr int64_t kEndless = INT64_MAX / 4;

  explicit MaxFlow(size_t points) : first_(points, kNone) {}

  void add_edge(uint32_t from, uint32_t to, int64_t capacity);

  // Whether each point can still be reached from the source when the flow is as large as can be: the cut nearest the source.
  // Flows beyond kEndless count as that.
  std::vector<bool> reached_at_most_flow(uint32_t source, uint32_t sink);
  [[nodiscard]] int64_t flow() const { return flow_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Edge {
    uint32_t to = 0;
    uint32_t next = kNone;  // of the same point
    int64_t left = 0;
  };

  bool level_from(uint32_t source, uint32_t sink);
  int64_t pushed(uint32_t source, uint32_t sink);

  std::vector<uint32_t> first_;
  std::vector<Edge> edges_;  // an edge and its reverse stand side by side
  std::vector<uint32_t> level_;
  std::vector<uint32_t> current_;
  int64_t flow_ = 0;
};

}  // namespace forerun::compile
