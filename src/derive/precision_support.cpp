#include "derive/precision_support.h"

namespace forerun::derive {

Status check_precision(Precision asked, const Device& device) {
  const bool bfloat16 = asked == Precision::amp_bf16 || asked == Precision::bf16;
  if (bfloat16 && device.peak.bf16_tensor <= 0) {
    return Error{"a " + device.name + " has no bfloat16 units: PyTorch refuses bfloat16 there, or emulates it",
                 std::string(name_of(asked)),
                 device.peak.fp16_tensor > 0
                     ? "take amp_fp16, or a GPU from Ampere on (one whose file has bf16_tensor_tflops)"
                     : "take fp32, or a GPU from Ampere on (one whose file has bf16_tensor_tflops)"};
  }
  if (asked == Precision::amp_fp8 && device.peak.fp8_tensor <= 0) {
    return Error{"a " + device.name + " has no fp8 units", std::string(name_of(asked)),
                 device.peak.bf16_tensor > 0
                     ? "take amp_bf16, or a GPU from Ada and Hopper on (H100, H200, B200, L40S; MI300X)"
                     : "take amp_fp16 or fp32, or a GPU from Ada and Hopper on (H100, H200, B200, L40S; MI300X)"};
  }
  const bool float16 = asked == Precision::amp_fp16 || asked == Precision::fp16;
  if (float16 && device.peak.fp16_tensor <= 0) {
    return Error{
        "a " + device.name + " has no tensor cores for float16, and no cost model here knows how slow it is there",
        std::string(name_of(asked)), "take fp32, or a GPU from Volta on (one whose file has fp16_tensor_tflops)"};
  }
  return {};
}

Precision precision_on(Precision asked, const Device& device) {
  return asked == Precision::tf32 && device.peak.tf32_tensor <= 0 ? Precision::fp32 : asked;
}

TrainingSetup setup_on(TrainingSetup asked, const Device& device) {
  asked.precision = precision_on(asked.precision, device);
  return asked;
}

std::string precision_caveat(Precision asked, const Device& device) {
  if (asked == Precision::amp_fp8) {
    return "linear layers in fp8 as Transformer Engine has them, never measured here: products reach the share of the "
           "fp8 peak "
           "that those in bfloat16 reach of theirs, casts go at the speed of memory, up to half of either in the "
           "range; what its "
           "Python costs the host is in the range alone. The last layer, attention, convolutions and experts stay in "
           "bfloat16";
  }
  if (precision_on(asked, device) == asked) return "";
  return "a " + device.name + " has no TF32 units: matrix products run in float32, as with fp32";
}

}  // namespace forerun::derive
