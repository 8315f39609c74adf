// The verb `scale`, apart from the predictors of research that it may ask: only forerun-lab has them.
#pragma once

#include <functional>
#include <string>

#include "api/scale_resources.h"
#include "cli/command.h"

namespace forerun::cli {

// Asks the learned predictor of this name, with weights of the user's own where a folder is given.
using AskResources =
    std::function<Result<LearnedResources>(const std::string& name, const std::string& weights,
                                           const ResourceQuestion& question, const CostModels& cost_models)>;

// With none, a question that names a predictor is handed to forerun-lab.
void add_scale_asking(const AskResources& ask, CLI::App& app, Run& chosen);

}  // namespace forerun::cli
