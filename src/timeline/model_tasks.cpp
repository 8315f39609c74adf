#include "timeline/model_tasks.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/check.h"

namespace forerun {
namespace {

StepPhase step_phase(Phase phase) {
  switch (phase) {
    case Phase::forward: return StepPhase::forward;
    case Phase::backward: return StepPhase::backward;
    case Phase::update: return StepPhase::update;
  }
  return StepPhase::none;
}

}  // namespace

std::vector<OpGradient> op_gradients(const Graph& graph) {
  std::map<uint32_t, OpGradient> found;             // by storage
  std::unordered_map<uint32_t, size_t> forward_op;  // by sequence number
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::forward && op.sequence != 0) forward_op.try_emplace(op.sequence, i);
    if (op.phase != Phase::backward) continue;
    for (const TensorId id : graph.outputs(op)) {
      const StorageId storage = graph.tensor(id).storage;
      if (graph.storage(storage).freed_before.valid() || graph.storage(storage).root != Root::none) continue;
      const auto reads = forward_op.find(op.sequence);
      const OpGradient made{i, i, reads == forward_op.end() ? 0 : reads->second, graph.storage(storage).bytes};
      found.try_emplace(storage.value, made).first->second.last = i;
    }
  }
  std::vector<OpGradient> list;
  for (const auto& [storage, gradient] : found) list.push_back(gradient);
  std::stable_sort(list.begin(), list.end(), [](const OpGradient& a, const OpGradient& b) { return a.last < b.last; });
  return list;
}

Result<ModelTasks> model_tasks(const Graph& graph, std::span<const OpCost> costs, Nanoseconds gap) {
  CHECK(costs.size() == graph.op_count(), "one cost for each op");
  auto names = std::make_shared<StringTable>();
  TaskGraphBuilder builder(names);
  Task task;
  task.op_instance = task.event = kNoLink;
  task.kind = TaskKind::mark;
  task.name = names->intern("beginning");
  task.lane = builder.add_lane({LaneKind::host_thread, 0, -1, true, "beginning"});
  ModelTasks made;
  made.beginning = builder.add(task);
  task.kind = TaskKind::kernel;
  task.lane = builder.add_lane({LaneKind::gpu_stream, 0, 0, true, "stream 0"});
  std::vector<TaskId> until(graph.op_count());  // the last task of an op and those before it
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    until[i] = i == 0 ? made.beginning : until[i - 1];
    if (costs[i].kernels == 0) continue;
    task.duration = costs[i].gpu - costs[i].overlapped + Nanoseconds(gap.value * (costs[i].kernels - 1));
    task.gap = gap;
    task.phase = step_phase(op.phase);
    task.name = task.op = names->intern(graph.name(op));
    task.module = names->intern(graph.module(op));
    until[i] = builder.add(task);
  }
  const auto last = static_cast<uint32_t>(builder.size() - 1);
  for (const OpGradient& gradient : op_gradients(graph)) {
    // The first task from the reading op on; where the op is not known, the first of all.
    const uint32_t before = gradient.used == 0 ? made.beginning.value : until[gradient.used - 1].value;
    made.gradients.push_back({until[gradient.last], TaskId(std::min(before + 1, last)), gradient.bytes});
  }
  auto tasks = std::move(builder).build();
  if (!tasks) return tasks.error();
  made.tasks = std::move(*tasks);
  return made;
}

}  // namespace forerun
