// to_cuda_forms: an iteration captured without a GPU -> the one a GPU would run.
//
// The capture (backend `generic`, docs/records.md) already follows CUDA's rules but for a few ops whose kernel the device
// chooses (generic_ops.h). Those are replaced, forward and backward, by what derivation emits for them; storages live as
// long as CUDA's ops hold them.
// Everything else stays as it was recorded, but for the views and copies of a result that the device's kernel writes in
// another layout than the record assumes (half-precision attention without cuDNN): where a reshape would copy, it does.
// Such a layout is followed through views and ends at the first op that computes.
#pragma once

#include "base/result.h"
#include "derive/dispatch.h"
#include "graph/graph.h"

namespace forerun::derive {

Result<Graph> to_cuda_forms(const Graph& generic, const DispatchTarget& target);

// An iteration captured for a GPU on tensors without data has its CUDA forms, but the reserve that cuDNN's recurrent
// layers keep for the backward pass is empty there, and some libraries' ops hide what they run (generic_ops.h).
bool lacks_forms(const Graph& cuda);
Result<Graph> with_forms(const Graph& cuda);

}  // namespace forerun::derive
