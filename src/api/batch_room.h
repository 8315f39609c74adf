// How large a batch each of many GPUs has room for, without trying it on each: what a run takes is replayed for a few batches, once for
// all of them, and read off the lines between those. `fit` (api/fit.h) tries every batch that it names, for one GPU.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "predict/predict.h"

namespace forerun {

// One for each device, in their order: 0 where not even one sample fits, nothing where the model takes no other batch or cannot be
// trained there. `precision`: that the model is trained in. Right to a few percent: what cuDNN takes jumps with shapes, and some memory is lost
// between blocks.
std::vector<std::optional<int64_t>> batches_with_room(const ModelRequest& model, Precision precision,
                                                      std::span<const Device> devices, const CostModels& cost_models,
                                                      const MemoryQuestion& question);

}  // namespace forerun
