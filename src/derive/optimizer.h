// The update phase: what torch.optim dispatches for SGD, Adam, AdamW, RMSprop and Adagrad, one tensor at a time (for-loop),
// in lists (foreach) or in one kernel (fused), in the steady state, when the optimizer's state already exists. Others:
// optimizers_by_tensor.h.
#pragma once

#include <functional>
#include <vector>

#include "derive/tracer.h"
#include "graph/training_run.h"

namespace forerun::derive {

struct ParameterSlot {
  Value parameter;
  Value step;           // Adam, AdamW, RMSprop, Adagrad
  Values moments;       // momentum buffer; exp_avg and exp_avg_sq; square_avg; sum
  bool matrix = false;  // the weight of a linear layer within the model: what Muon is for
};

// Makes the state tensors, as roots, for each parameter. Call before the forward pass: they are there from the start.
// `is_matrix` (by parameter) is asked where the optimizer is Muon; the others' optimizer is then AdamW.
std::vector<ParameterSlot> make_optimizer_state(Tracer& t, const Values& parameters, const OptimizerSpec& spec,
                                                const std::function<bool(const Value&)>& is_matrix = {});

// Emits the update. Parameters without a gradient are passed over.
void update(Tracer& t, const std::vector<ParameterSlot>& slots, const OptimizerSpec& spec);

// The same optimizer in an implementation that exists: RMSprop has no fused one, some go by tensor alone.
OptimizerImpl available_impl(const OptimizerSpec& spec);

}  // namespace forerun::derive
