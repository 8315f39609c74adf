#include "timeline/reference_simulator.h"

#include <optional>

namespace forerun {
namespace {

using Starts = std::vector<std::optional<Nanoseconds>>;

// When the task could start, or nothing where it is not ready. `order` is what was started before, in that order.
std::optional<Nanoseconds> possible_start(const TaskGraph& graph, const Starts& starts,
                                          const std::vector<TaskId>& order, TaskId task) {
  Nanoseconds at{};
  if (graph.lane_of(task).ordered) {
    for (uint32_t i = 0; i < task.value; ++i) {
      if (graph.lane(TaskId(i)) == graph.lane(task) && !starts[i]) return std::nullopt;
    }
  }
  for (const TaskId other : order) {  // the last one on the lane decides when it is free
    if (graph.lane(other) == graph.lane(task)) {
      at = lane_free(*starts[other.value], graph.duration(other), graph.gap(other));
    }
  }
  for (const Dependency& dependency : graph.dependencies(task)) {
    const auto& before = starts[dependency.before.value];
    if (!before) return std::nullopt;
    at = std::max(at, allowed_by(dependency, *before, graph.duration(dependency.before)));
  }
  return at;
}

}  // namespace

Simulation reference_simulate(const TaskGraph& graph, const Schedule& schedule) {
  Starts starts(graph.size());
  std::vector<TaskId> order;
  Simulation result;
  while (order.size() < graph.size()) {
    std::vector<ReadyTask> ready;
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const TaskId task(i);
      if (starts[i]) continue;
      const auto start = possible_start(graph, starts, order, task);
      if (start) ready.push_back({task, *start, graph.priority(task), graph.lane(task)});
    }
    CHECK(!ready.empty(), "a TaskGraph has a cycle");
    const ReadyTask next = ready[schedule(ready)];
    starts[next.task.value] = next.start;
    order.push_back(next.task);
    result.end = std::max(result.end, next.start + graph.duration(next.task));
  }
  for (const auto& start : starts) result.start.push_back(*start);
  return result;
}

}  // namespace forerun
