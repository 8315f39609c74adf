// What `forerun calibrate` fits to measurements: one file each in this folder, one line each in calibrations.cpp.
#pragma once

#include <vector>

#include "lab/cli/task.h"

namespace forerun::cli {

using Calibration = Task;

// In the order of `forerun calibrate --help`.
const std::vector<Calibration>& calibrations();

Calibration host_calibration();
Calibration intervals_calibration();
Calibration devices_calibration();
Calibration scale_calibration();
Calibration testbed_calibration();
Calibration convolutions_calibration();

}  // namespace forerun::cli
