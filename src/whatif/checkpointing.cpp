// Activation checkpointing: the forward pass runs again, segment by segment, within the backward pass.
//
// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost". Assumed: segments of equal work (segments=N, by
// default 8), all but the last recomputed; kernels and host work of the forward pass as they were the first time. The
// recomputation stands at the beginning of the backward pass: where in it does not change the iteration. Saves memory.
#include <array>

#include "whatif/kernel_insertion.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {

Status apply_checkpointing(EditableIteration& edited, const Parameters& parameters) {
  const Result<double> segments = parameters.positive("segments", 8);
  if (!segments) return segments.error().within("checkpointing");
  if (Status status = check_eager(edited, "checkpointing"); !status.ok()) return status;
  const TaskGraph& graph = edited.graph();
  GraphEdit edit(graph);
  double host = 0, device = 0;
  int inserted = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    const auto time = static_cast<double>(graph.duration(task).value);
    if (graph.phase(task) == StepPhase::forward) {
      if (on_gpu(graph.kind(task))) device += time;
      if (graph.lane_of(task).kind == LaneKind::host_thread) host += time + static_cast<double>(graph.gap(task).value);
    }
    if (graph.phase(task) != StepPhase::backward || graph.kind(task) != TaskKind::kernel || device == 0) continue;
    const double share = std::max(0.0, 1 - 1 / *segments);
    insert_kernel(edit, task, Side::before, "forward again", Nanoseconds(static_cast<int64_t>(share * device)),
                  Nanoseconds(static_cast<int64_t>(share * host)));
    host = device = 0;
    ++inserted;
  }
  if (inserted == 0) return Error{"no backward pass", edited.trace().file, "profile a whole training step"};
  edited.assume("the forward pass runs again but for the last of " + parameters.text("segments", "8") +
                " segments; saves memory, not time");
  return edited.commit(edit);
}

}  // namespace forerun::whatif
