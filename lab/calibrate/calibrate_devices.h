// Fits how times carry over from the measured GPU to others, and checks it on GPUs left out: `forerun calibrate devices` and
// `forerun eval --suite gpus`.
#pragma once

#include <string>

#include "base/work_control.h"
#include "lab/accuracy/device_accuracy.h"

namespace forerun {

struct DeviceRequest {
  std::string ops;       // folder that NeuSight's archive of op latencies was unpacked in; empty: beside `neusight`
  std::string neusight;  // folder of its labels and model configurations; empty: the data set neusight
  std::string ets;       // folder of the traces of ETS; empty: the same
  std::string lambda;    // folder of the throughputs that Lambda published; empty: the same
  std::string pipedream, hkbu, foundry;  // folders of what is judged alone (judged_runs.h); empty: the same
};

// Judges by fits that leave out each GPU in turn; what is not there but for the op latencies is named in its problems.
Result<DeviceAccuracy> evaluate_devices(const DeviceRequest& request, const WorkControl& control = {});

// The same, and writes the fit to `out` (empty: the data folder's) and the range to the data folder's intervals where `out`
// is empty.
struct DeviceOutcome {
  std::string file;
  DeviceAccuracy accuracy;
};
Result<DeviceOutcome> calibrate_devices(const DeviceRequest& request, const std::string& out,
                                        const WorkControl& control = {});

}  // namespace forerun
