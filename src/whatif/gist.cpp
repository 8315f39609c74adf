// Gist: what activations leave for the backward pass is encoded after its last forward use and decoded before its next.
//
// Source: Jain et al., "Gist: Efficient Data Encoding for Deep Neural Network Training", as Daydream models it: a kernel
// that encodes behind each ReLU and one that decodes before its backward op. Assumed: both wait for memory (float32 read,
// one bit an element written, and the other way round). Saves memory, not time.
#include "whatif/kernel_insertion.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {

Status apply_gist(EditableIteration& edited, const Parameters&) {
  if (edited.timer() == nullptr)
    return Error{"the cost model is not there", "data folder", "train it: forerun train hybrid"};
  if (Status status = check_eager(edited, "gist"); !status.ok()) return status;
  GraphEdit edit(edited.graph());
  const Nanoseconds host = usual_host_op(edited.graph());
  int encoded = 0, decoded = 0;
  for (const TaskId kernel : select(edited.graph(), is_kind(TaskKind::kernel))) {
    const std::optional<TracedOp> op = edited.op_of(kernel);
    if (!op || op->inputs.empty()) continue;
    const bool forward = op->name == "aten::relu" || op->name == "aten::relu_" || op->name == "aten::clamp_min_" ||
                         op->name == "aten::clamp_min";
    if (!forward && op->name != "aten::threshold_backward") continue;
    const Nanoseconds time = edited.timer()->memory_time(4.125 * static_cast<double>(op->elements(0)));
    insert_kernel(edit, kernel, forward ? Side::after : Side::before, forward ? "gist encode" : "gist decode", time,
                  host);
    (forward ? encoded : decoded) += 1;
  }
  if (encoded == 0) return Error{"no ReLU with recorded shapes", edited.trace().file, "Gist encodes what ReLUs leave"};
  edited.assume(std::to_string(encoded) + " encoding and " + std::to_string(decoded) +
                " decoding kernels, as long as their memory traffic; saves memory, not time");
  return edited.commit(edit);
}

}  // namespace forerun::whatif
