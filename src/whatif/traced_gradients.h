// The gradients of a traced iteration: how large each is, when it is ready, where its parameter is used, what applies it.
//
// Autograd hands every parameter's gradient to one node, torch::autograd::AccumulateGrad, as soon as it is complete; a
// profiler records that call with the gradient's shape (record_shapes=True) and type. The gradient is ready when the
// last kernel that the thread had launched by then has ended: that of the op which computed it, or of the sum where a
// parameter is used twice. The autograd node before it carries the sequence number of the forward op, whose first kernel
// is where the parameter is used. A pass ends where kernels of the update follow; without a mark of the optimizer in the
// trace whatever is launched behind the last gradient counts as the update. Where shapes are missing the user says how
// many bytes there are in all, and every gradient gets an equal share. Of several micro-batches before an update the last
// one counts.
#pragma once

#include <vector>

#include "timeline/gradient_exchange.h"
#include "whatif/editable_iteration.h"

namespace forerun::whatif {

// `all_bytes`: of all gradients of an iteration, where the trace has no shapes; 0: not given. An Error where the trace
// holds no backward pass.
Result<std::vector<BackwardPass>> traced_gradients(const EditableIteration& edited, Bytes all_bytes);

}  // namespace forerun::whatif
