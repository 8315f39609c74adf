// What a plan makes of a model: its blocks cut into stages, what each stage takes, and what each GPU holds and exchanges.
#pragma once

#include <vector>

#include "scale/block.h"
#include "scale/gradient_exchange.h"
#include "scale/pipeline.h"
#include "scale/stages.h"
#include "scale/step.h"

namespace forerun::scale {

struct PlanParts {
  ModelCosts costs;
  std::vector<BlockRange> stages;  // by virtual stage
  std::vector<StageTimes> times;   // the same
  PipelineShape shape;
  Nanoseconds hop;  // from one stage to the next
};

// ZeRO 3 of Megatron's authors is DeepSpeed's, which reaches less of the network than FSDP.
Efficiency efficiency_of(const StepSetup& setup, const Plan& plan);

Result<PlanParts> parts_of(const CostSource& source, const StepSetup& setup, const Plan& plan);

// What one GPU of a device of the pipeline holds.
std::vector<Block> held_by(const PlanParts& parts, const Plan& plan, int64_t device);

Nanoseconds update_of(const ModelCosts& costs, const std::vector<Block>& held, const Plan& plan,
                      const StepSetup& setup);

// The exchange of gradients and parameters among the GPUs that hold these blocks.
Result<ExchangeTimes> exchange_among(const std::vector<Block>& held, const Plan& plan, const StepSetup& setup,
                                     const Network& network);

}  // namespace forerun::scale
