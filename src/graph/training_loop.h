// TrainingLoop: who runs the iterations, and what that changes about them.
//
// A loop written by hand takes a batch that lies on the GPU, sets gradients to none, and runs forward, backward and update. Libraries
// add to that. What each does was read from its source and measured in pairs on an H200, the same model and batch in the plain loop and
// in the library's (docs/loops.md has the table):
//
//                      trainer                             lightning             accelerate
//   next batch         copied, and waited for              copied                copied, and waited for
//   model's results    copied to float32 under autocast    as they are            as trainer
//   gradients to none  after the update                    after the forward     as the user writes it
//   loss               read by the host (is it finite?)    copied                as it is
//   gradients          clipped to a norm of 1              as they are           as they are
//   optimizer          AdamW, fused, unless another is named
//
// trainer: transformers 5.17, Trainer._run_epoch, training_step, TrainingArguments' defaults. lightning: 2.6, Closure.closure.
// accelerate: 1.15, Accelerator.prepare_model, DataLoaderShard.__iter__; transformers' Trainer runs on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace forerun {

enum class TrainingLoop : uint8_t { plain, trainer, lightning, accelerate };
constexpr size_t kTrainingLoops = 4;

struct LoopRules {
  bool waits_for_batch = false;      // the host waits until the GPU is idle before each micro-batch
  bool waits_for_loss = false;       // and after each backward pass
  bool widens_results = false;       // copies of half-precision results in float32, where autocast made them
  bool keeps_gradients = false;      // those of the last iteration live through the forward pass
  double clip_norm = 0;              // where the user does not say
  bool prefers_fused_adamw = false;  // likewise
};

LoopRules rules_of(TrainingLoop loop);

std::string_view name_of(TrainingLoop loop);
std::optional<TrainingLoop> training_loop_named(std::string_view name);

}  // namespace forerun
