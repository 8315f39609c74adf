// What a plan needs of each GPU's memory, by rules.
//
// Parameters, gradients and optimizer states as ZeRO (Rajbhandari et al. 2020) divides them; activations as the blocks
// say, for as many micro-batches as 1F1B keeps in flight.
// The GPU that needs most is meant. Left out: fragmentation; the stage memory/ replays an allocator for plans of one
// stage.
#pragma once

#include <span>
#include <vector>

#include "base/quantity.h"
#include "scale/block.h"
#include "scale/plan.h"
#include "scale/stages.h"

namespace forerun::scale {

// Bytes of each parameter.
struct StateBytes {
  int64_t parameter = 2;
  int64_t gradient = 2;
  int64_t state = 12;    // of the optimizer, with float32 copies
  int64_t gathered = 2;  // as ZeRO 2 and 3 gather it
};

struct MemoryUse {
  Bytes parameters;
  Bytes gradients;
  Bytes states;
  Bytes activations;
  Bytes transient;  // while one block runs: logits, gathered parameters
  Bytes context;    // of CUDA and NCCL

  [[nodiscard]] Bytes total() const { return parameters + gradients + states + activations + transient + context; }
};

// By device of the pipeline. `stages`: by virtual stage.
std::vector<MemoryUse> memory_by_device(std::span<const Block> blocks, std::span<const BlockRange> stages,
                                        const Plan& plan, const StateBytes& bytes);
// That of the one that needs most.
MemoryUse memory_of(std::span<const Block> blocks, std::span<const BlockRange> stages, const Plan& plan,
                    const StateBytes& bytes);

}  // namespace forerun::scale
