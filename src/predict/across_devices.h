// One run on many devices: what `predict` says of each, with what they have in common computed once.
//
// Devices that get the same kernels (derive::DispatchTarget) share the derived iteration, and those that run it in the same
// arithmetic what the trees say of its ops; those where ops take the same memory for themselves share the replay. Left out of each
// prediction: tables of ops and modules, the moment of the peak, and assumptions.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/work_control.h"
#include "predict/predict.h"

namespace forerun {

using BuildRun = std::function<Result<TrainingRun>(const Device& device)>;

// One for each device, in their order; an Error where the device cannot run it. `asked`, `compile`: the precision of the run that
// `build` gives, and how it is compiled. `work` advances by one for each; an Error of the whole is its own.
Result<std::vector<Result<Prediction>>> predict_across(const BuildRun& build, Precision asked, CompileMode compile,
                                                       std::span<const Device> devices, const CostModels& cost_models,
                                                       const MemoryQuestion& question, unsigned threads, Work& work);

}  // namespace forerun
