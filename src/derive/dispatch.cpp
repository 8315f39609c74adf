#include "derive/dispatch.h"

namespace forerun::derive {

// PyTorch 2.11 takes cuDNN first on compute capabilities 9.0 and 10.0 alone.
DispatchTarget target_of(const Device& device) {
  return {.cudnn_attention = device.compute_capability == 90 || device.compute_capability == 100};
}

DispatchTarget target_of(const Device& device, const TrainingSetup& setup, const InputSpec& input,
                         const DynamoTrace* dynamo) {
  DispatchTarget target = target_of(device);
  if (setup.compile == CompileMode::none) return target;
  target.traced_masks = input.kind == InputKind::tokens && input.flavour == "hf";
  if (dynamo != nullptr && !dynamo->masks.empty()) target.masks = &dynamo->masks;
  return target;
}

std::string target_caveat(const Device& device) {
  if (!device.is_nvidia() || device.compute_capability > 0) return "";
  return "the file of the " + device.name +
         " gives neither compute_capability nor architecture: kernels as on GPUs before Hopper";
}

AttentionBackend attention_backend(const DispatchTarget& target, const AttentionOperands& operands, bool grouped,
                                   bool causal) {
  const auto& [query, key, value, mask] = operands;
  if (target.traced_masks && !mask && !causal) return AttentionBackend::math;
  const bool half = query->dtype == DType::bfloat16 || query->dtype == DType::float16;
  const bool fits_fused = query->sizes[3] % 8 == 0 && query->sizes[3] <= 256;
  const bool widths_differ = value->sizes[3] != query->sizes[3];
  AttentionBackend backend = AttentionBackend::efficient;
  if (half && fits_fused) backend = target.cudnn_attention ? AttentionBackend::cudnn : AttentionBackend::flash;
  if ((mask || widths_differ) && backend == AttentionBackend::flash) backend = AttentionBackend::efficient;
  if (needs_gradient(mask)) backend = AttentionBackend::efficient;  // the only fused one that gives a mask its gradient
  const bool heads_differ = key->sizes[1] != query->sizes[1];
  if (heads_differ && (!grouped || backend == AttentionBackend::efficient)) backend = AttentionBackend::math;
  return backend;
}

BatchNormBackend batch_norm_backend(const Value& x, const Values& parameters, bool training) {
  constexpr int64_t kMostTrained = 880801;  // samples that cuDNN's kernels take
  constexpr int64_t kMostEvaluated = 65535;
  constexpr int64_t kMostElements = INT32_MAX - 1;  // some of them count in 32 bits
  const Value& weight = parameters[0];
  const bool affine = weight != nullptr && parameters[1] != nullptr;
  const bool tracked = parameters[2] != nullptr && parameters[3] != nullptr;
  const bool untracked = parameters[2] == nullptr && parameters[3] == nullptr && training;
  const bool takes_types = x->dtype != DType::bfloat16 && affine && weight->dtype != DType::bfloat16 &&
                           (x->dtype != DType::float16 || weight->dtype == DType::float32);
  const bool takes_sizes = x->sizes.size() >= 3 && x->sizes[0] <= (training ? kMostTrained : kMostEvaluated) &&
                           element_count(x->sizes) <= kMostElements;
  return takes_types && takes_sizes && (tracked || untracked) ? BatchNormBackend::cudnn : BatchNormBackend::native;
}

}  // namespace forerun::derive
