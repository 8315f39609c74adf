// Runs on many GPUs that others published, asked for as `forerun scale` would: `forerun eval --suite published-runs`.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/accuracy/run_accuracy.h"
#include "predict/cost_models.h"

namespace forerun {

struct RunSuiteOptions {
  std::string runs;     // file of runs; empty: data/scale/published_runs.json
  std::string source;   // of that alone; empty: all
  bool search = false;  // hold --search to the runs that are marked for it
  bool each = false;    // a line for each run
};

Result<RunAccuracy> evaluate_runs(const RunSuiteOptions& options, const CostModels& cost_models);

}  // namespace forerun
