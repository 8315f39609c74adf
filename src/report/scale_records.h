// Simulated workloads as `resources/1` records (docs/records.md).
#pragma once

#include <string>

#include "api/scale_records.h"

namespace forerun {

// A record of the same workload with the simulated metrics in place of the measured, and source "simulation".
std::string simulated_record(const RecordedWorkload& workload);

}  // namespace forerun
