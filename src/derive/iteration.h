// From forward graph to the whole training iteration: forward as dispatched, loss, backward, optimizer update.
#pragma once

#include "base/result.h"
#include "derive/dispatch.h"
#include "graph/training_run.h"

namespace forerun::derive {

// The steady-state iteration: optimizer state exists, gradients were set to none before the forward pass.
// The loss is cross entropy of the first result against a target of the input's kind; a result without dimensions is the loss itself.
Result<Graph> derive_iteration(const Graph& forward, const InputSpec& input, const TrainingSetup& setup,
                               const DispatchTarget& target = {});

}  // namespace forerun::derive
