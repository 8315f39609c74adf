// Whether a run can be compiled where it is to run: what torch.compile, or the compiler behind it, refuses of a GPU or of a model.
//
// Inductor's kernels are compiled by Triton, which takes NVIDIA GPUs from Volta (compute capability 7.0) on, and those of AMD. What is not
// predicted compiled, though PyTorch does it, is compile::check_setup's.
#pragma once

#include "base/result.h"
#include "device/device.h"
#include "graph/training_run.h"

namespace forerun::derive {

// Whether a model runs other ops while it is traced than it does eagerly: transformers' models of tokens mask attention then (dispatch.h).
bool changes_when_traced(const InputSpec& input);

// An Error where no kernel can be generated for the device. An architecture that is not known is taken to be new enough.
Status check_compiler(const Device& device);

// The same of a run, and whether its model can be traced so. Nothing is refused of a setup that does not compile.
Status check_compile(const TrainingSetup& setup, const InputSpec& input, const Device& device);

}  // namespace forerun::derive
