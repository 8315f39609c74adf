// A model as the stage scale sees it: what its blocks cost at a micro-batch, and what memory a replica
// takes.
//
// A model goes by the iteration that `forerun predict` sees: its forward graph, shared by a tensor group
// (derive/tensor_parallel.h), derived, costed and cut into blocks; memory is replayed through the allocator. `--stack megatron` asks for another program, Megatron-LM with its fused kernels: gpt2, llama, and bert with its
// language-model head go by formulas fitted to it (scale/transformer_cost.h).
#pragma once

#include <optional>
#include <string>

#include "api/scale.h"
#include "predict/cost_models.h"
#include "predict/model_file.h"
#include "scale/block.h"
#include "scale/step.h"
#include "scale/transformer.h"

namespace forerun {

struct ScaledModel {
  std::string name;
  int64_t parameters = 0;
  TrainingSetup setup;                            // what the question left open is chosen
  std::optional<scale::Transformer> transformer;  // as Megatron trains it; nothing: its iteration's graph is cut
  std::optional<FileKind> file;                   // nothing: a name
  int64_t sequence = 0;                           // tokens of a sample; 0: it reads none
  int64_t own_batch = 1;                          // where the question leaves it open
  int64_t layers = 0;                             // of its longest list of blocks; 0: not known
  int64_t experts = 1;                            // of a layer
  int64_t tables = 0;                             // whose rows are summed, of a model that is known by name
  bool shares_layers = false;                     // among the GPUs of a tensor group
};

Result<ScaledModel> scaled_model(const ScaleQuestion& question, const Device& gpu);

// Whether a plan can be told of a model that is compiled; ok of others.
Status check_compiled_plan(const ScaledModel& model, const scale::Plan& plan);

// Whether a plan whose optimizer is on the host can be told of a model; ok of others.
Status check_offload(const ScaledModel& model, const scale::Plan& plan);

// Where its arithmetic runs: half-precision tensor cores without bfloat16 take float16.
Unit scale_unit(Precision precision, const Device& gpu);
scale::StateBytes state_bytes(const ScaledModel& model);
// Moved for each parameter by Megatron's optimizer.
int64_t update_bytes(const ScaledModel& model);
// Its precision there; and what that means, in words.
std::string precision_name(const ScaledModel& model);
std::string precision_text(const ScaledModel& model, const Device& gpu);

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
