// Optimizers that exist in one form alone, one tensor after the other: torch.optim.Adafactor and Muon, Lion as its authors wrote
// it, and the blockwise 8-bit AdamW of bitsandbytes (one kernel a tensor).
#pragma once

#include "derive/optimizer.h"

namespace forerun::derive {

bool goes_by_tensor(OptimizerKind kind);

// Makes the state of one parameter, as roots.
void make_state_by_tensor(Tracer& t, const OptimizerSpec& spec, ParameterSlot& slot);

// Emits the update of one parameter. Muon is for matrices: others are for AdamW.
void update_by_tensor(Tracer& t, const ParameterSlot& slot, const Value& gradient, const OptimizerSpec& spec);

}  // namespace forerun::derive
