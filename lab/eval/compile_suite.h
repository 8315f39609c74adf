// "How near do predictions of compiled models come?": the table of `forerun eval --suite compile`.
//
// A folder holds measured.jsonl, a line a set-up with what was measured of it as it is and compiled, and captures.jsonl.zst, the same
// set-ups captured without a GPU, from which both are predicted. Set-ups that one of the two lacks, and those that the compiler breaks on, are
// named and not judged.
#pragma once

#include <string>

#include "base/work_control.h"
#include "lab/accuracy/compile_accuracy.h"

namespace forerun {

struct CompileSuiteOptions {
  std::string folder;  // empty: data/compile
};

Result<CompileAccuracy> evaluate_compile(const CompileSuiteOptions& options, const WorkControl& control = {});

}  // namespace forerun
