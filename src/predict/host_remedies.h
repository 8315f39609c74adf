// "The host bounds this iteration: what would take the bound away, and what would an iteration take then?"
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "predict/kept_runs.h"
#include "predict/predict.h"

namespace forerun {

// One that needs nothing but the iteration: all of it captured once and launched as a CUDA graph. Nothing where the host reads values of
// the GPU in between, or where a library's loop does, which no graph can hold.
std::optional<HostRemedy> cuda_graph_remedy(std::span<const LaneOp> ops, const LaneSetup& setup, const Prediction& p);

// Those that are other runs of the same model: the fused optimizer, and the smallest doubled batch with which the GPU bounds the
// iteration and which fits. Each as `forerun predict` would answer for it.
std::vector<HostRemedy> rebuilt_remedies(const ModelRequest& request, const RunSource& build, const Device& device,
                                         const CostModels& cost_models, const Prediction& p);

}  // namespace forerun
