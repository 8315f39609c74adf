// The accuracy of `forerun predict` on its own training families, each predicted without having been seen.
#pragma once

#include "lab/accuracy/evaluation.h"
#include "lab/calibrate/cross_validation.h"

namespace forerun {

// Takes as long as training the trees once for each group of families.
Result<SuiteResult> evaluate_left_out(const CrossValidation& request, const WorkControl& control = {});
// The same of runs predicted before.
Result<SuiteResult> evaluate_left_out_runs(const CrossValidation& request, const std::vector<LeftOutRun>& runs);

}  // namespace forerun
