#include "derive/precision_support.h"

namespace forerun::derive {

Status check_precision(Precision asked, const Device& device) {
  if (asked != Precision::amp_bf16 || device.peak.bf16_tensor > 0) return {};
  return Error{"a " + device.name + " has no bfloat16 units: PyTorch refuses bfloat16 autocast there, or emulates it",
               "amp_bf16",
               "take fp32, or a GPU from Ampere on (one whose file has bf16_tensor_tflops); float16 autocast is not "
               "modelled yet"};
}

Precision precision_on(Precision asked, const Device& device) {
  return asked == Precision::tf32 && device.peak.tf32_tensor <= 0 ? Precision::fp32 : asked;
}

TrainingSetup setup_on(TrainingSetup asked, const Device& device) {
  asked.precision = precision_on(asked.precision, device);
  return asked;
}

std::string precision_caveat(Precision asked, const Device& device) {
  if (precision_on(asked, device) == asked) return "";
  return "a " + device.name + " has no TF32 units: matrix products run in float32, as with fp32";
}

}  // namespace forerun::derive
