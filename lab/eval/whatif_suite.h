// "How near do what-ifs come?": the table of `forerun eval --suite whatif`.
//
// In: a profiler trace of one training step (float32, for-loop Adam). Out: the time of a variant of that step, held against
// what was measured of it without a profiler. A folder holds whatif.jsonl.gz, run records with the base of each family
// first, and whatif_traces/FAMILY.base.trace.json.zst or .gz.
#pragma once

#include <string>

#include "base/work_control.h"
#include "lab/accuracy/whatif_accuracy.h"

namespace forerun {

struct WhatIfSuiteOptions {
  std::string folder;            // empty: data/h200
  bool amp_by_daydream = false;  // only variants in mixed precision of the base's layout, by Daydream's rule
};

Result<WhatIfAccuracy> evaluate_whatif(const WhatIfSuiteOptions& options, const WorkControl& control = {});

}  // namespace forerun
