// to_run_record: a training run as one line of the run/1 form, the input fields alone.
//
// Strides, backend, parameters as tensors and results have no place in run/1 and are left out. Read back, the line
// gives the same ops, tensors (without strides), storages and roots.
#pragma once

#include <string>

#include "graph/training_run.h"

namespace forerun {

std::string to_run_record(const TrainingRun& run);

}  // namespace forerun
