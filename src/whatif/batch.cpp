// Another batch size: what forward and backward kernels do beyond their floor grows with the batch.
//
// Source: work is proportional to the batch. Assumed: kernels keep their efficiency, the update and the host's part do not
// depend on the batch, and so does communication of gradients; data loading grows with the batch.
#include "whatif/optimizations.h"
#include "whatif/setup_change.h"

namespace forerun::whatif {

Status apply_batch(Scene& scene, const Parameters& parameters) {
  const Result<double> factor = parameters.positive("factor", 2);
  if (!factor) return factor.error().within("batch");
  if (scene.model() != nullptr && scene.timer() != nullptr) {
    Status derived = change_setup(scene, scene.setup, scene.batch_factor * *factor);
    if (derived.ok()) scene.assume("the iteration derived again with the other batch; the host's part stays");
    if (derived.ok()) return derived;
  }
  constexpr Nanoseconds kFloor(2000);  // a kernel that does next to nothing
  const TaskGraph& graph = scene.graph();
  GraphEdit edit(graph);
  const Predicate computation =
      both(both(is_on_gpu(), negated(is_kind(TaskKind::communication))), negated(in_phase(StepPhase::update)));
  for (const TaskId task : select(graph, computation)) {
    const Nanoseconds beyond = std::max(Nanoseconds(0), graph.duration(task) - kFloor);
    const auto grown = static_cast<int64_t>(static_cast<double>(beyond.value) * *factor);
    edit.set_duration(task, graph.duration(task) - beyond + Nanoseconds(grown));
  }
  edit.scale(select(graph, is_kind(TaskKind::data_loading)), *factor);
  scene.assume("kernels of forward and backward grow with the batch; update, host and communication do not");
  return scene.commit(edit);
}

}  // namespace forerun::whatif
