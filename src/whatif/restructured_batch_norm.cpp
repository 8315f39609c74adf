// Restructured batch normalization: each norm split and fused with its neighbours.
//
// Source: Jung et al., "Restructuring Batch Normalization to Accelerate CNN Training", as Daydream models it. Assumed: the
// kernels of activations behind norms vanish into them, and the norms' own, which wait for memory, take half the time.
#include "whatif/kernel_insertion.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {

Status apply_restructured_batch_norm(EditableIteration& edited, const Parameters&) {
  std::vector<TaskId> norms, activations;
  bool behind_norm = false;  // forward; backward: before one, which the same count of kernels stands for
  for (const TaskId kernel : select(edited.graph(), is_kind(TaskKind::kernel))) {
    const std::optional<TracedOp> op = edited.op_of(kernel);
    if (!op) continue;
    const bool norm = op->name.find("batch_norm") != std::string::npos;
    const bool forward = op->name.find("relu") != std::string::npos || op->name == "aten::clamp_min_";
    const bool backward = op->name == "aten::threshold_backward";
    if (norm) norms.push_back(kernel);
    if (backward || (forward && behind_norm)) activations.push_back(kernel);
    behind_norm = norm;
  }
  if (norms.empty()) {
    return Error{"no batch norm with a recorded name", edited.trace().file, "this optimization is for such networks"};
  }
  GraphEdit edit(edited.graph());
  edit.scale(norms, 0.5);
  remove_kernels(edit, activations);
  edited.assume(std::to_string(norms.size()) + " kernels of batch norms take half the time, " +
                std::to_string(activations.size()) + " of activations beside them none (Jung et al., Daydream's rule)");
  return edited.commit(edit);
}

}  // namespace forerun::whatif
