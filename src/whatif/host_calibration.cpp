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

std::array<double, kParts> host_time(const Scene& scene) {
  std::array<double, kParts> sums{};
  const TaskGraph& graph = scene.graph();
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    if (!issues_work(graph, task)) continue;
    sums[part_of(graph.phase(task))] += static_cast<double>((graph.duration(task) + graph.gap(task)).value);
  }
  for (double& sum : sums) sum /= static_cast<double>(std::max<size_t>(scene.iterations(), 1));
  return sums;
}

}  // namespace

double host_shift(double profiled_over_model) {
  const double deviation = std::log(profiled_over_model) - kProfiledOverModel;
  const double usual = std::clamp(deviation, -kUsualScatter, kUsualScatter);
  return kPersistent * usual + (deviation - usual);
}

Status take_out_profiler(Scene& scene) {
  const auto by_usual_slowdown = [&] {
    scene.assume("without the profiler the host is 1.35 times as fast (1.16 to 1.63 in measured runs)");
    return scene.remove_profiler();
  };
  if (scene.model() == nullptr || scene.timer() == nullptr || !scene.timer()->host()) return by_usual_slowdown();
  const auto cost = iteration_cost(*scene.model(), 1, scene.setup, *scene.timer());
  if (!cost) return by_usual_slowdown();
  GraphEdit first(scene.graph());
  scene.shorten_first_op(first);
  if (Status status = scene.commit(first); !status.ok()) return status;
  const std::array<double, kParts> traced = host_time(scene);
  // What parameters cost once an iteration stands with the backward pass, where their gradients are accumulated.
  const std::array<double, 3> modelled = {cost->phase(0).host, cost->phase(1).host + cost->per_iteration,
                                          cost->update.host};
  const double all = modelled[0] + modelled[1] + modelled[2];
  const double seen = traced[0] + traced[1] + traced[2] + traced[3];
  if (all <= 0 || seen <= 0) return by_usual_slowdown();
  const double speed = std::exp(host_shift(seen / all));
  GraphEdit edit(scene.graph());
  for (uint32_t i = 0; i < scene.graph().size(); ++i) {
    const TaskId task(i);
    if (!issues_work(scene.graph(), task)) continue;
    const size_t part = part_of(scene.graph().phase(task));
    const double whole = part < 3 ? modelled[part] : 0;
    const double factor = part < 3 && traced[part] > 0 ? speed * whole / traced[part] : speed * all / seen;
    edit.scale(std::array{task}, factor);
    edit.scale_gaps(std::array{task}, factor);
  }
  scene.set_host_unprofiled();
  scene.assume(
      "host times of the host model for these ops (one server with eager PyTorch 2.11), shifted towards the trace");
  return scene.commit(edit);
}

}  // namespace forerun::whatif
