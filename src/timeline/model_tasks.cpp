#include "timeline/model_tasks.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "cost/host/cuda_graph.h"
#include "derive/gradient_buckets.h"
#include "graph/op_modules.h"
#include "timeline/host_gpu_timeline.h"

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

// Those of a bucket are complete once the last of them is.
void hand_over_in_buckets(std::vector<OpGradient>& gradients) {
  std::vector<Bytes> sizes;
  for (const OpGradient& gradient : gradients) sizes.push_back(gradient.bytes);
  size_t first = 0;
  for (const size_t end : bucket_ends(sizes)) {
    for (; first <= end; ++first) gradients[first].last = gradients[end].last;
  }
}

}  // namespace

std::vector<OpGradient> op_gradients(const Graph& graph, const CompiledParts* compiled) {
  std::map<uint32_t, OpGradient> found;             // by storage
  std::unordered_map<uint32_t, size_t> written;     // by storage: the last op of a compiled graph that writes it
  std::unordered_map<uint32_t, size_t> forward_op;  // by sequence number
  std::unordered_map<uint32_t, size_t>
      first_of;     // the first op of a module: blocks that run again read the same weights
  size_t used = 0;  // by the op that is differentiated, or was last: a gradient is accumulated right behind it
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::forward) first_of.try_emplace(op.module.value, i);
    if (op.phase == Phase::forward && op.sequence != 0) forward_op.try_emplace(op.sequence, i);
    if (op.phase != Phase::backward) continue;
    if (const auto first = first_of.find(op.module.value); runs_again(graph, op) && first != first_of.end()) {
      forward_op.try_emplace(op.sequence, first->second);
    }
    if (const auto reads = forward_op.find(op.sequence); reads != forward_op.end()) used = reads->second;
    for (const TensorId id : graph.outputs(op)) {
      const StorageId storage = graph.tensor(id).storage;
      if (graph.storage(storage).freed_before.valid() || graph.storage(storage).root != Root::none) continue;
      const OpGradient made{i, i, used, graph.storage(storage).bytes};
      found.try_emplace(storage.value, made).first->second.last = i;
      if (compiled != nullptr && compiled->inside[i]) written[storage.value] = i;
    }
  }
  std::vector<OpGradient> list;
  for (const auto& [storage, gradient] : found) {
    list.push_back(gradient);
    if (const auto in_graph = written.find(storage); in_graph != written.end()) list.back().last = in_graph->second;
  }
  std::stable_sort(list.begin(), list.end(), [](const OpGradient& a, const OpGradient& b) { return a.last < b.last; });
  if (compiled != nullptr) hand_over_in_buckets(list);
  return list;
}

Result<ModelTasks> model_tasks(const Graph& graph, std::span<const OpCost> costs, const ModelTaskOptions& options) {
  CHECK(costs.size() == graph.op_count(), "one cost for each op");
  auto names = std::make_shared<StringTable>();
  TaskGraphBuilder builder(names);
  const LaneId thread = builder.add_lane({LaneKind::host_thread, 0, 0, true, "host"});
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream, 0, 0, true, "stream 0"});
  Task task;
  task.lane = thread;
  task.kind = TaskKind::mark;
  task.name = names->intern("step");
  task.op_instance = task.event = kNoLink;
  ModelTasks made;
  made.beginning = builder.add(task);
  std::vector<LaneOp> host;
  if (options.host != nullptr) {
    host = lane_ops(graph, costs, *options.host);
    task.kind = TaskKind::host_op;
    task.phase = StepPhase::update;  // zero_grad and what parameters cost
    task.name = names->intern("Optimizer.zero_grad");
    task.duration = options.host->per_iteration;
    builder.add(task);
  }
  std::vector<TaskId> until(graph.op_count());  // the last kernel of an op and those before it
  TaskId last;
  const auto loop_task = [&](TaskKind kind, StepPhase phase, Nanoseconds duration) {
    Task of_loop;
    of_loop.lane = thread;
    of_loop.kind = kind;
    of_loop.phase = phase;
    of_loop.name = of_loop.op = names->intern("training loop");
    of_loop.duration = duration;
    of_loop.op_instance = of_loop.event = kNoLink;
    return builder.add(of_loop);
  };
  const auto wait = [&](StepPhase phase) {
    builder.depend(loop_task(TaskKind::sync, phase, Nanoseconds(0)), {last, Anchor::end, Nanoseconds(0)});
  };
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    Task kernel;
    kernel.lane = stream;
    kernel.kind = TaskKind::kernel;
    kernel.duration = costs[i].gpu - costs[i].overlapped;
    kernel.gap = kernel_gap(costs[i].captured, options.gap) * costs[i].kernels;
    kernel.phase = step_phase(op.phase);
    kernel.name = kernel.op = names->intern(graph.name(op));
    kernel.module = names->intern(graph.module(op));
    kernel.op_instance = options.calls.empty() || op.phase == Phase::update ? kNoLink : options.calls[i];
    kernel.event = static_cast<uint32_t>(i);
    TaskId issued;
    if (options.host != nullptr) {
      Task issue = kernel;
      issue.lane = thread;
      issue.duration = host[i].host;
      issue.gap = Nanoseconds(0);
      issue.kind = host[i].waits ? TaskKind::sync : host[i].kernels > 0 ? TaskKind::launch : TaskKind::host_op;
      issued = builder.add(issue);
      if (host[i].waits && last.valid()) builder.depend(issued, {last, Anchor::end, Nanoseconds(0)});
    }
    if (costs[i].kernels > 0) {
      last = builder.add(kernel);
      if (issued.valid()) builder.depend(last, {issued, Anchor::end, Nanoseconds(0)});
    }
    if (options.host != nullptr && last.valid() && loop_waits_after(graph, i, options.rules)) wait(kernel.phase);
    until[i] = last;
  }
  if (options.host != nullptr && options.host->loop.value > 0) {
    loop_task(TaskKind::host_op, StepPhase::update, options.host->loop);
  }
  if (options.host != nullptr && options.rules.waits_for_batch && last.valid()) wait(StepPhase::update);
  std::vector<TaskId> from(graph.op_count() + 1, last);  // the first kernel of an op and those behind it
  for (size_t i = graph.op_count(); i-- > 0;) from[i] = costs[i].kernels > 0 ? until[i] : from[i + 1];
  for (const OpGradient& gradient : op_gradients(graph, options.compiled)) {
    if (until[gradient.last].valid()) {
      made.gradients.push_back({until[gradient.last], from[gradient.used], gradient.bytes});
    }
  }
  auto tasks = std::move(builder).build();
  if (!tasks) return tasks.error();
  made.tasks = std::move(*tasks);
  return made;
}

}  // namespace forerun
