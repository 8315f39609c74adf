// "Do optimizations bring what their papers claim?": the table of `forerun eval --suite daydream`.
//
// Optimizations that could not be measured here (P3, restructured batch norm, vDNN, Gist, DGC, MetaFlow) are asked about models as
// near to the papers' as the zoo and the device catalogue have them, and set beside what the papers say of them; where
// that cannot be done, the table says why. The error of what could be measured stands beside Daydream's own.
#pragma once

#include "base/work_control.h"
#include "lab/accuracy/claims_accuracy.h"

namespace forerun {

Result<ClaimsAccuracy> evaluate_daydream(const WorkControl& control = {});

}  // namespace forerun
