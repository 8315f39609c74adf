// What PyTorch's choice between kernels depends on, and the choices: one place for each rule.
//
// Used where an iteration is derived (lowering.h) and where a recorded one is finished (cuda_forms.h). Rules follow
// PyTorch 2.11. Left out: switches that a user may set (torch.backends.cudnn.enabled, sdpa_kernel).
#pragma once

#include <vector>

#include "derive/value.h"
#include "device/device.h"
#include "graph/training_run.h"

namespace forerun::derive {

struct DispatchTarget {
  bool cudnn_attention = true;  // half-precision attention through cuDNN (Hopper and later); else flash
  // Models of transformers, while Dynamo traces them, mask all attention (masking_utils.py): causal one as traced_attention (aten.h) has it,
  // and what looks at everything by one value in every place, whose stride of 0 no fused kernel takes
  // (check_last_dim_stride_equals_1_dense of sdp_utils).
  bool traced_masks = false;
  const std::vector<bool>* masks =
      nullptr;  // by call of attention, as Dynamo saw it (DynamoTrace::masks); null: `traced_masks` of all
  size_t most_ops =
      2'000'000;  // of the forward graph: an iteration takes about 1 kB of memory for each while it is derived
};

// What a program meets on the device.
DispatchTarget target_of(const Device& device);
// The same where the model may be compiled. Which attention is masked then, Dynamo knows; where it was not asked, all of transformers' models
// that read tokens is taken to be.
DispatchTarget target_of(const Device& device, const TrainingSetup& setup, const InputSpec& input,
                         const DynamoTrace* dynamo = nullptr);

// What a user is told where the device's file does not say which kernels it gets; empty where it does.
std::string target_caveat(const Device& device);

enum class AttentionBackend : uint8_t { efficient, cudnn, flash, math };

struct AttentionOperands {
  Value query, key, value;  // [batch, heads, length, width]
  Value mask;               // may be null
};
// `grouped`: fewer key-value heads are meant to be shared (enable_gqa); without that, heads that differ are broadcast,
// which no fused kernel does. `causal`: without a mask, keys that come later are not looked at.
AttentionBackend attention_backend(const DispatchTarget& target, const AttentionOperands& operands, bool grouped,
                                   bool causal);

enum class BatchNormBackend : uint8_t { cudnn, native };

// parameters: weight, bias, running mean, running variance; each may be null.
BatchNormBackend batch_norm_backend(const Value& x, const Values& parameters, bool training);

}  // namespace forerun::derive
