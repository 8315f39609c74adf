// ZeRO: optimizer state (stage 1), gradients (2) and parameters (3) are shared out among the workers.
//
// Source: Rajbhandari et al. (2020). The update shrinks to a worker's share. Stages 1 and 2: gradients are reduced to
// their owners beside the backward pass, and the updated parameters gathered behind the update. Stage 3: parameters are
// gathered before their use in forward and again before the backward pass: 3/2 of the bytes of an all-reduce; gathering
// runs ahead of computation, one message after the other. Assumed: buckets as in ddp; the update's kernels take less time
// in proportion.
#include "whatif/exchange_costs.h"
#include "whatif/network_parameters.h"
#include "whatif/traced_gradients.h"

namespace forerun::whatif {
namespace {

GradientExchange reduce_to_owners(const Topology& topology) {
  GradientExchange exchange;
  exchange.parts = [topology](Bytes bytes) -> std::vector<ExchangePart> {
    if (ranks_of(topology) < 2) return {};
    return {collective_part(reduce_scatter(bytes, topology), topology)};
  };
  return exchange;
}

// The lane that the exchange was put on.
LaneId network_lane(const TaskGraph& graph) {
  const auto lanes = graph.lanes();
  for (size_t i = lanes.size(); i-- > 0;) {
    if (lanes[i].kind == LaneKind::network_link && lanes[i].number == 0) return LaneId(i);
  }
  return {};
}

Task gathering(GraphEdit& edit, LaneId lane, Nanoseconds duration, StepPhase phase) {
  Task task;
  task.kind = TaskKind::communication;
  task.phase = phase;
  task.duration = duration;
  task.lane = lane;
  task.name = edit.name("gathering of parameters");
  task.op_instance = task.event = kNoLink;
  return task;
}

// Behind the update, whose end the next iteration's first work waits for.
void gather_updated(GraphEdit& edit, const BackwardPass& pass, LaneId lane, Nanoseconds duration) {
  const TaskId last = pass.updates.back();
  const TaskId gathered = edit.append(gathering(edit, lane, duration, StepPhase::update));
  edit.depend(gathered, {last, Anchor::end, Nanoseconds(0)});
  Task wait;
  wait.kind = TaskKind::kernel;
  wait.phase = StepPhase::update;
  wait.name = edit.name("wait for parameters");
  wait.op_instance = wait.event = kNoLink;
  edit.depend(edit.insert_after(last, wait), {gathered, Anchor::end, Nanoseconds(0)});
}

// What a pass's parameters must have been updated by before they can be gathered.
struct UpdateBefore {
  TaskId last;                              // of the pass before, or of the same pass in the copy before
  std::vector<CarriedDependency>* carried;  // null: the pass before is in the graph
};

// Before each use, in the order of use; each message may leave when the one two before it has been used.
void gather_before_use(GraphEdit& edit, const BackwardPass& pass, LaneId lane, const Topology& topology,
                       const UpdateBefore& update) {
  std::vector<Gradient> order = pass.gradients;
  std::stable_sort(order.begin(), order.end(), [](const Gradient& a, const Gradient& b) { return a.used < b.used; });
  const TaskId last_forward = order.back().used.valid() ? order.back().used : pass.gradients.front().ready;
  const auto gather = [&](const std::vector<Gradient>& list, StepPhase phase) {
    std::vector<TaskId> users;  // the first of each message
    TaskId first;
    Bytes bytes{};
    for (const Gradient& gradient : list) {
      const TaskId user = phase == StepPhase::forward ? gradient.used : gradient.ready;
      if (!user.valid()) continue;
      if (!first.valid()) first = user;
      bytes += gradient.bytes;
      if (bytes.value < (25 << 20) && &gradient != &list.back()) continue;
      const TaskId gathered = edit.append(gathering(edit, lane, all_gather(bytes, topology), phase));
      if (users.size() >= 2) {
        edit.depend(gathered, {users[users.size() - 2], Anchor::start, Nanoseconds(0)});
      } else if (phase == StepPhase::backward) {
        edit.depend(gathered, {last_forward, Anchor::start, Nanoseconds(0)});
      } else if (update.last.valid()) {
        const Dependency on = {update.last, Anchor::end, Nanoseconds(0)};
        update.carried != nullptr ? update.carried->push_back({gathered, on}) : edit.depend(gathered, on);
      }
      edit.depend(first, {gathered, Anchor::end, Nanoseconds(0)});
      users.push_back(first);
      first = TaskId();
      bytes = Bytes(0);
    }
  };
  gather(order, StepPhase::forward);
  gather(pass.gradients, StepPhase::backward);
}

}  // namespace

Status apply_zero(EditableIteration& edited, const Parameters& parameters) {
  const std::string stage = parameters.text("stage", "2");
  if (stage != "1" && stage != "2" && stage != "3") {
    return Error{"there is no stage '" + stage + "'", "zero", "there are 1, 2 and 3"};
  }
  const auto topology = topology_of(edited, parameters);
  const auto given = megabytes(parameters, "gradients_mb", 0);
  if (!topology) return topology.error().within("zero");
  if (!given) return given.error().within("zero");
  Status status = exchange_gradients(edited, parameters, reduce_to_owners(*topology),
                                     "zero: stage " + stage + ", " + describe(*topology));
  if (!status.ok() || ranks_of(*topology) < 2) return status;
  const auto passes = traced_gradients(edited, *given);
  if (!passes) return passes.error();
  GraphEdit edit(edited.graph());
  const LaneId lane = network_lane(edited.graph());
  for (size_t i = 0; i < passes->size(); ++i) {
    const BackwardPass& pass = (*passes)[i];
    edit.scale(pass.updates, 1.0 / static_cast<double>(ranks_of(*topology)));
    Bytes bytes{};
    for (const Gradient& gradient : pass.gradients) bytes += gradient.bytes;
    if (stage == "3") {
      const BackwardPass& before = (*passes)[i == 0 ? passes->size() - 1 : i - 1];
      UpdateBefore update{before.updates.empty() || (i == 0 && passes->size() > 1) ? TaskId() : before.updates.back(),
                          passes->size() == 1 ? &edited.carried : nullptr};
      gather_before_use(edit, pass, lane, *topology, update);
    } else if (!pass.updates.empty()) {
      gather_updated(edit, pass, lane, all_gather(bytes, *topology));
    }
  }
  return edited.commit(edit);
}

}  // namespace forerun::whatif
