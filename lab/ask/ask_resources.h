// "What does Driple say of this training in that setting?": the network of lab/learn/driple asked about one workload, for
// `forerun scale MODEL --testbed SETTING --with driple`.
//
// Weights know the GPU, the settings and the ways to train that were measured for them (card.json, `knows`); others are
// refused.
#pragma once

#include <string>
#include <vector>

#include "api/scale_resources.h"
#include "base/result.h"
#include "predict/cost_models.h"

namespace forerun {

// Names that can be asked.
const std::vector<std::string>& askable_resource_predictors();

// `weights`: a folder that `forerun train driple` wrote; empty: the ones that come with Forerun.
Result<LearnedResources> ask_resources(const std::string& name, const std::string& weights,
                                       const ResourceQuestion& question, const CostModels& cost_models);

}  // namespace forerun
