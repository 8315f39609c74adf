#include "derive/compile_support.h"

namespace forerun::derive {
namespace {

constexpr int kVolta = 70;  // compute capability 7.0

}  // namespace

bool changes_when_traced(const InputSpec& input) { return input.kind == InputKind::tokens && input.flavour == "hf"; }

Status check_compiler(const Device& device) {
  if (!device.is_nvidia() || device.compute_capability == 0 || device.compute_capability >= kVolta) return {};
  return Error{"Triton takes NVIDIA GPUs from Volta (compute capability 7.0) on, which the " + device.name + " is not",
               "--compile", "leave out --compile, or take another GPU"};
}

Status check_compile(const TrainingSetup& setup, const InputSpec& input, const Device& device) {
  if (setup.compile == CompileMode::none) return {};
  if (Status status = check_compiler(device); !status.ok()) return status;
  if (setup.attention != Attention::flash || !changes_when_traced(input)) return {};
  return Error{"flash kernels take no mask, and models of transformers pass one while they are traced: PyTorch raises",
               "--attention flash with --compile", "leave out --attention flash, or leave out --compile"};
}

}  // namespace forerun::derive
