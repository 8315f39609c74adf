#include "whatif/host_calibration.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "whatif/iteration_cost.h"

namespace forerun::whatif {
namespace {

bool issues_work(const TaskGraph& graph, TaskId task) {
  return graph.lane_of(task).kind == LaneKind::host_thread && graph.kind(task) != TaskKind::data_loading &&
         graph.kind(task) != TaskKind::sync && graph.kind(task) != TaskKind::mark;
}

// Forward, backward, update, and what stands between them.
constexpr size_t kParts = 4;
size_t part_of(StepPhase phase) {
  switch (phase) {
    case StepPhase::forward: return 0;
    case StepPhase::backward: return 1;
    case StepPhase::update: return 2;
    default: return 3;
  }
}

std::array<double, kParts> host_time(const EditableIteration& edited) {
  std::array<double, kParts> sums{};
  const TaskGraph& graph = edited.graph();
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    if (!issues_work(graph, task)) continue;
    sums[part_of(graph.phase(task))] += static_cast<double>((graph.duration(task) + graph.gap(task)).value);
  }
  for (double& sum : sums) sum /= static_cast<double>(std::max<size_t>(edited.iterations(), 1));
  return sums;
}

}  // namespace

double host_shift(double profiled_over_model) {
  const double deviation = std::log(profiled_over_model) - kProfiledOverModel;
  const double usual = std::clamp(deviation, -kUsualScatter, kUsualScatter);
  return kPersistent * usual + (deviation - usual);
}

Status take_out_profiler(EditableIteration& edited) {
  const auto by_usual_slowdown = [&] {
    edited.assume("without the profiler the host is 1.35 times as fast (1.16 to 1.63 in measured runs)");
    return edited.remove_profiler();
  };
  if (edited.model() == nullptr || edited.timer() == nullptr || !edited.timer()->host()) return by_usual_slowdown();
  const auto cost = iteration_cost(*edited.model(), 1, edited.setup, *edited.timer());
  if (!cost) return by_usual_slowdown();
  GraphEdit first(edited.graph());
  edited.shorten_first_op(first);
  if (Status status = edited.commit(first); !status.ok()) return status;
  const std::array<double, kParts> traced = host_time(edited);
  // What parameters cost once an iteration stands with the backward pass, where their gradients are accumulated.
  const std::array<double, 3> modelled = {cost->phase(0).host, cost->phase(1).host + cost->per_iteration,
                                          cost->update.host};
  const double all = modelled[0] + modelled[1] + modelled[2];
  const double seen = traced[0] + traced[1] + traced[2] + traced[3];
  if (all <= 0 || seen <= 0) return by_usual_slowdown();
  const double speed = std::exp(host_shift(seen / all));
  GraphEdit edit(edited.graph());
  for (uint32_t i = 0; i < edited.graph().size(); ++i) {
    const TaskId task(i);
    if (!issues_work(edited.graph(), task)) continue;
    const size_t part = part_of(edited.graph().phase(task));
    const double whole = part < 3 ? modelled[part] : 0;
    const double factor = part < 3 && traced[part] > 0 ? speed * whole / traced[part] : speed * all / seen;
    edit.scale(std::array{task}, factor);
    edit.scale_gaps(std::array{task}, factor);
  }
  edited.set_host_unprofiled();
  edited.assume(
      "host times of the host model for these ops (one server with eager PyTorch 2.11), shifted towards the trace");
  return edited.commit(edit);
}

}  // namespace forerun::whatif
