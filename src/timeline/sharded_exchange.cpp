#include "timeline/sharded_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "timeline/exchange_costs.h"

namespace forerun {
namespace {

constexpr double kDoubledNodes = 0.0126;  // of the passes, each time that there are twice as many nodes

// Behind the update, whose end the next iteration's first work waits for.
void gather_updated(GraphEdit& edit, const BackwardPass& pass, LaneId lane, Nanoseconds duration) {
  const TaskId last = pass.updates.back();
  Task gather;
  gather.kind = TaskKind::communication;
  gather.phase = StepPhase::update;
  gather.duration = duration;
  gather.lane = lane;
  gather.name = edit.name("gathering of parameters");
  gather.op_instance = gather.event = kNoLink;
  const TaskId gathered = edit.append(gather);
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

Bytes share_of(Bytes bytes, double share) { return Bytes(std::llround(static_cast<double>(bytes.value) * share)); }

// Of parameters in the order of their first use.
std::vector<ParameterUse> forward_uses(const GraphEdit& edit, const BackwardPass& pass, double share) {
  std::vector<TaskGradient> used;
  std::copy_if(pass.gradients.begin(), pass.gradients.end(), std::back_inserter(used),
               [](const TaskGradient& gradient) { return gradient.used.valid(); });
  std::stable_sort(used.begin(), used.end(),
                   [](const TaskGradient& a, const TaskGradient& b) { return a.used < b.used; });
  const std::vector<bool> ends = unit_ends(edit.original(), used);
  std::vector<ParameterUse> uses;
  for (size_t i = 0; i < used.size(); ++i) {
    uses.push_back({used[i].used, share_of(used[i].bytes, share), TaskId(), !ends.empty() && ends[i]});
  }
  return uses;
}

// Before their uses in the forward pass and again in the backward pass.
void gather_before_use(GraphEdit& edit, const BackwardPass& pass, const std::vector<std::vector<TaskId>>& arrived,
                       ParameterGathering gathering, double share, const UpdateBefore& update, ExchangeCounts& counts) {
  const std::vector<bool> ends = unit_ends(edit.original(), pass.gradients);
  gathering.units = !ends.empty();
  const std::vector<ParameterUse> forward = forward_uses(edit, pass, share);
  std::vector<ParameterUse> backward;
  for (size_t i = 0; i < pass.gradients.size(); ++i) {
    const TaskGradient& gradient = pass.gradients[i];
    backward.push_back({gradient.ready, share_of(gradient.bytes, share),
                        arrived[i].empty() ? TaskId() : arrived[i].back(), !ends.empty() && ends[i]});
  }
  const GatherCounts ahead = add_gathers(edit, forward, gathering);
  for (const TaskId first : ahead.first) {
    if (!update.last.valid()) break;
    const Dependency on = {update.last, Anchor::end, Nanoseconds(0)};
    update.carried != nullptr ? update.carried->push_back({first, on}) : edit.depend(first, on);
  }
  gathering.phase = StepPhase::backward;
  const GatherCounts again = add_gathers(edit, backward, gathering);
  const TaskId last_forward = forward.empty() ? pass.gradients.front().ready : forward.back().user;
  for (const TaskId first : again.first) edit.depend(first, {last_forward, Anchor::start, Nanoseconds(0)});
  for (const GatherCounts& gathers : {ahead, again}) {
    counts.contending.insert(counts.contending.end(), gathers.contending.begin(), gathers.contending.end());
    counts.exchange += gathers.exchange;
  }
}

// Whether a stage exchanges beside the passes: not where all gradients are there at once, as a compiled graph hands them over.
bool exchanges_beside(const std::vector<BackwardPass>& passes, int stage) {
  return stage == 3 || std::any_of(passes.begin(), passes.end(), [](const BackwardPass& pass) {
           return std::any_of(pass.gradients.begin(), pass.gradients.end(), [&](const TaskGradient& gradient) {
             return gradient.ready != pass.gradients.front().ready;
           });
         });
}

}  // namespace

double gathered_share(int stage, Precision precision) { return is_autocast(precision) && stage >= 2 ? 0.5 : 1; }

double waits_for_nodes(int stage, int64_t nodes) {
  return stage < 2 || nodes < 2 ? 0 : kDoubledNodes * std::log2(static_cast<double>(nodes));
}

std::string waits_text() {
  return fmt::format(
      "ZeRO 2 and 3 wait for the slowest GPU at every block: passes take {:.1f} % longer for each doubling "
      "of nodes, as published runs do",
      100 * kDoubledNodes);
}

Grouping sharded_grouping(int stage) { return stage == 3 ? Grouping::units : Grouping::buckets; }

void share_out(GraphEdit& edit, const std::vector<BackwardPass>& passes, const ShardedTraining& sharded,
               ExchangeCounts& counts, std::vector<CarriedDependency>& carried) {
  const Topology& topology = sharded.topology;
  if (ranks_of(topology) < 2) return;
  const double waits = waits_for_nodes(sharded.stage, topology.nodes);
  if (waits > 0 && exchanges_beside(passes, sharded.stage)) {
    const Predicate passing = either(in_phase(StepPhase::forward), in_phase(StepPhase::backward));
    edit.scale(select(edit.original(), both(is_kind(TaskKind::kernel), passing)), 1 + waits);
  }
  const ParameterGathering gathering{.lane = counts.lanes.front(), .costs = [&](Bytes bytes) {
                                       return collective_part(sharded.call + all_gather(bytes, topology), topology);
                                     }};
  for (size_t i = 0; i < passes.size(); ++i) {
    const BackwardPass& pass = passes[i];
    edit.scale(pass.updates, 1.0 / static_cast<double>(ranks_of(topology)));
    Bytes bytes{};
    for (const TaskGradient& gradient : pass.gradients) bytes += gradient.bytes;
    if (sharded.stage == 3) {
      const BackwardPass& before = passes[i == 0 ? passes.size() - 1 : i - 1];
      const bool unknown = before.updates.empty() || (i == 0 && passes.size() > 1);
      gather_before_use(edit, pass, counts.arrived[i], gathering, sharded.gathered,
                        {unknown ? TaskId() : before.updates.back(), passes.size() == 1 ? &carried : nullptr}, counts);
    } else if (!pass.updates.empty()) {
      const Nanoseconds gathered = gathering.costs(share_of(bytes, sharded.gathered)).busy;
      gather_updated(edit, pass, gathering.lane, gathered);
      counts.exchange += gathered;
    }
  }
}

}  // namespace forerun
