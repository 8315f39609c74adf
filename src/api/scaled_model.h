// A model as the stage scale sees it: what its blocks cost at a micro-batch, and what memory a replica
// takes.
//
// Transformers (gpt2, llama, bert with its language-model head) go by formulas (scale/transformer_cost.h) and can be
// shared in every way. Any other model goes by the iteration that `forerun predict` sees on one GPU, cut into blocks;
// memory of its replicas is replayed through the allocator.
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
  std::optional<scale::Transformer> transformer;  // nothing: its iteration's graph is cut
  std::optional<FileKind> file;                   // nothing: a name
  std::optional<int64_t> own_batch;               // that of a capture
};

Result<ScaledModel> scaled_model(const ScaleQuestion& question, const Device& gpu);

// Where its arithmetic runs: half-precision tensor cores without bfloat16 take float16.
Unit scale_unit(Precision precision, const Device& gpu);
scale::StateBytes state_bytes(const ScaledModel& model);
// What its precision means there, in words.
std::string precision_text(const ScaledModel& model, const Device& gpu);

// `question`, `model`, `setup` and `cost_models` must outlive it.
scale::CostSource cost_source(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                              const CostModels& cost_models);

// Replicas of a model that goes by its graph: the exchange gradient by gradient in place of block by block.
Status refine_exchange(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                       const CostModels& cost_models, scale::Step& step);

// Replaces the rules' memory by a replay, for a plan of one stage of a model that goes by its graph.
Status replay_memory(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                     const CostModels& cost_models, scale::Step& step);

}  // namespace forerun
