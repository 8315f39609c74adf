// What a model costs on a GPU of a plan, as the stage scale asks: blocks at a micro-batch, passes, exchanges and memory.
//
// A model goes by the iteration that `forerun predict` sees: its forward graph, shared by a tensor group
// (derive/tensor_parallel.h), derived, costed and cut into blocks; memory is replayed through the allocator. What Megatron-LM trains goes by
// formulas fitted to it (scale/transformer_cost.h).
#pragma once

#include "api/scaled_model.h"
#include "predict/cost_models.h"
#include "scale/step.h"

namespace forerun {

// `whole`: every block is derived and costed, as `forerun predict` does; else equal ones once (derive/repeated_blocks.h).
// `question`, `model`, `setup` and `cost_models` must outlive it.
scale::CostSource cost_source(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                              const CostModels& cost_models, bool whole);

// Replicas of a model that goes by its graph, and one GPU: passes, their range and what they are spent on as `forerun predict` has
// them, additions of the gradients of further micro-batches included.
Status refine_passes(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                     const CostModels& cost_models, scale::Step& step);

// Plans of one stage of a model that goes by its graph: the exchange gradient by gradient in place of block by block.
Status refine_exchange(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                       const CostModels& cost_models, scale::Step& step);

// Replaces the rules' memory by a replay, for a plan of a model that goes by its graph: of its stage, or of the stages that need most
// by the rules; not of interleaved ones.
Status replay_memory(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                     const CostModels& cost_models, const scale::CostSource& costs, scale::Step& step);

}  // namespace forerun
