#include "whatif/kernel_insertion.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/statistics.h"

namespace forerun::whatif {

TaskId launch_of(const TaskGraph& graph, TaskId kernel) {
  for (const Dependency& on : graph.dependencies(kernel)) {
    const TaskKind kind = graph.kind(on.before);
    if (kind == TaskKind::launch) return on.before;
  }
  return {};
}

Nanoseconds usual_host_op(const TaskGraph& graph) {
  std::unordered_map<uint32_t, std::pair<Nanoseconds, int>> calls;  // by call of an outermost op: host time, launches
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    const uint32_t call = graph.op_instance(task);
    if (call == kNoLink || graph.lane_of(task).kind != LaneKind::host_thread) continue;
    calls[call].first += graph.duration(task) + graph.gap(task);
    calls[call].second += graph.kind(task) == TaskKind::launch ? 1 : 0;
  }
  std::vector<int64_t> times;
  for (const auto& [call, cost] : calls) {
    if (cost.second == 1) times.push_back(cost.first.value);
  }
  return Nanoseconds(times.empty() ? 15'000 : upper_median(std::move(times)));
}

TaskId insert_kernel(GraphEdit& edit, TaskId neighbour, Side side, const std::string& name, Nanoseconds duration,
                     Nanoseconds host) {
  const TaskGraph& graph = edit.original();
  Task kernel = graph[neighbour];
  kernel.name = kernel.op = edit.name(name);
  kernel.kind = TaskKind::kernel;
  kernel.duration = duration;
  kernel.gap = Nanoseconds(1000);
  kernel.event = kernel.op_instance = kNoLink;
  const bool before = side == Side::before;
  const TaskId made = before ? edit.insert_before(neighbour, kernel) : edit.insert_after(neighbour, kernel);
  const TaskId launch = launch_of(graph, neighbour);
  if (!launch.valid()) return made;
  Task call = graph[launch];
  call.name = call.op = kernel.name;
  call.duration = host;
  call.gap = Nanoseconds(0);
  call.event = call.op_instance = kNoLink;
  const TaskId launched = before ? edit.insert_before(launch, call) : edit.insert_after(launch, call);
  edit.depend(made, {launched, Anchor::end, Nanoseconds(0)});
  return made;
}

void remove_kernels(GraphEdit& edit, std::span<const TaskId> kernels) {
  const TaskGraph& graph = edit.original();
  std::unordered_set<uint32_t> calls;  // outermost ops that only launch what goes
  for (const TaskId kernel : kernels) calls.insert(graph.op_instance(kernel));
  std::vector<bool> goes(graph.size());
  for (const TaskId kernel : kernels) goes[kernel.value] = true;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (on_gpu(graph.kind(TaskId(i))) && !goes[i]) calls.erase(graph.op_instance(TaskId(i)));
  }
  calls.erase(kNoLink);
  for (const TaskId kernel : kernels) {
    const TaskId launch = launch_of(graph, kernel);
    if (!launch.valid()) continue;
    edit.set_duration(launch, Nanoseconds(0));
    edit.scale_gaps(std::array{launch}, 0);
  }
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    if (graph.lane_of(task).kind != LaneKind::host_thread || !calls.contains(graph.op_instance(task))) continue;
    edit.scale(std::array{task}, 0);
    edit.scale_gaps(std::array{task}, 0);
  }
  edit.remove(kernels);
}

}  // namespace forerun::whatif
