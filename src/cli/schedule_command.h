// The verb `schedule`, for programs that have learned predictors to ask about jobs.
#pragma once

#include <functional>
#include <string>

#include "api/schedule.h"
#include "cli/command.h"

namespace forerun::cli {

// The learned predictor of that name, ready to be asked about iterations; nothing: this program has none, and hands the whole
// command to forerun-lab.
using AskPredictor = std::function<Result<IterationOracle>(const std::string& name)>;

void add_schedule_asking(const AskPredictor& ask, CLI::App& app, Run& chosen);

}  // namespace forerun::cli
