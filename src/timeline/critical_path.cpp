#include "timeline/critical_path.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace forerun {
namespace {

// The task that ran before each on its lane.
std::vector<uint32_t> lane_before(const TaskGraph& graph, const Simulation& simulation) {
  std::vector<uint32_t> before(graph.size(), kNoLink);
  std::vector<uint32_t> last(graph.lanes().size(), kNoLink);
  const auto visit = [&](uint32_t task) {
    uint32_t& on_lane = last[graph.lane(TaskId(task)).value];
    before[task] = on_lane;
    on_lane = task;
  };
  if (graph.all_lanes_ordered()) {
    for (uint32_t i = 0; i < graph.size(); ++i) visit(i);
    return before;
  }
  std::vector<uint32_t> order(graph.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return simulation.start[a] < simulation.start[b]; });
  for (const uint32_t task : order) visit(task);
  return before;
}

}  // namespace

std::vector<CriticalTask> critical_path(const TaskGraph& graph, const Simulation& simulation) {
  std::vector<CriticalTask> path;
  if (graph.size() == 0) return path;
  const std::vector<uint32_t> before = lane_before(graph, simulation);
  uint32_t at = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (simulation.end_of(graph, TaskId(i)) > simulation.end_of(graph, TaskId(at))) at = i;
  }
  while (true) {
    const TaskId task(at);
    const Nanoseconds start = simulation.start[at];
    CriticalTask step{task, Reason::beginning, Nanoseconds(0)};
    std::optional<uint32_t> next;
    for (const Dependency& dependency : graph.dependencies(task)) {
      const Nanoseconds began = simulation.start_of(dependency.before);
      if (next || start.value == 0 || allowed_by(dependency, began, graph.duration(dependency.before)) != start)
        continue;
      next = dependency.before.value;
      step.reason = Reason::dependency;
    }
    if (!next && start.value > 0 && before[at] != kNoLink) {
      next = before[at];
      step.reason = Reason::lane;
    }
    if (next) step.wait = std::max(Nanoseconds(0), start - simulation.end_of(graph, TaskId(*next)));
    path.push_back(step);
    if (!next) break;
    at = *next;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace forerun
