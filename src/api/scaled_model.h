// A model as the stage scale sees it: which program trains it, how, and which plans can be told of it. What it costs is scaled_costs.h's.
//
// `--stack megatron` asks for another program than PyTorch, Megatron-LM with its fused kernels: it has gpt2, llama, and bert with its
// language-model head.
#pragma once

#include <optional>
#include <string>

#include "api/scale.h"
#include "predict/model_file.h"
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

}  // namespace forerun
