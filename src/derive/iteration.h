// From forward graph to the whole training iteration: forward as dispatched, loss, backward, optimizer update.
#pragma once

#include "base/result.h"
#include "derive/dispatch.h"
#include "derive/stage_forward.h"
#include "graph/training_run.h"

namespace forerun::derive {

// The steady-state iteration: optimizer state exists, gradients were set to none before the forward pass.
// The loss is cross entropy of the first result against a target of the input's kind; a result without dimensions is the loss itself.
Result<Graph> derive_iteration(const Graph& forward, const InputSpec& input, const TrainingSetup& setup,
                               const DispatchTarget& target = {});

// The iteration of a stage of a pipeline in the order of 1F1B: `ahead` forward passes before the first backward pass, then one of each in
// turn. As torch.distributed.pipelining does, the stage holds what it received and handed on until their backward pass.
struct StageSchedule {
  int64_t ahead = 1;
  int64_t micro_batches = 1;
};
Result<Graph> derive_stage(const StageForward& stage, const StageSchedule& schedule, const InputSpec& input,
                           const TrainingSetup& setup, const DispatchTarget& target = {});

}  // namespace forerun::derive
