// Kernels whose name contains `match` run `factor` times as fast.
//
// Source: the plainest question that can be put to a trace. Assumed: nothing else changes.
#include "whatif/optimizations.h"

namespace forerun::whatif {

Status apply_faster_kernel(EditableIteration& edited, const Parameters& parameters) {
  const Result<double> factor = parameters.positive("factor", 2);
  if (!factor) return factor.error().within("faster_kernel");
  const std::vector<TaskId> kernels = select(edited.graph(), both(is_on_gpu(), named(parameters.text("match"))));
  if (kernels.empty()) {
    return Error{"no kernel's name contains '" + parameters.text("match") + "'", "faster_kernel",
                 "`forerun trace` lists the kernels"};
  }
  GraphEdit edit(edited.graph());
  edit.scale(kernels, 1 / *factor);
  edited.assume(std::to_string(kernels.size()) + " kernels matching '" + parameters.text("match") + "' scaled by 1/" +
                parameters.text("factor", "2"));
  return edited.commit(edit);
}

}  // namespace forerun::whatif
