// How well times carry over to GPUs that nothing was measured on, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "cost/hybrid/prediction_intervals.h"
#include "lab/calibrate/device_fit.h"

namespace forerun {

// A model that others ran on another GPU.
struct OtherGpuRun {
  std::string gpu;
  std::string model;
  std::string what;  // "forward", "forward, backward", "training"
  int64_t batch = 0;
  int64_t length = 0;
  double measured_ms = 0;
  double predicted_ms = 0;
};

struct DeviceCheck {
  hybrid::DeviceScale scale;                 // fitted to all GPUs
  std::vector<hybrid::CarriedError> plain;   // by the analytic model's ratio alone
  std::vector<hybrid::CarriedError> fitted;  // each GPU by a fit to the others
  std::vector<OtherGpuRun> runs;             // the same
  RatioInterval range;                       // eight of ten of those runs
  std::vector<std::string> problems;         // what could not be checked
};

std::string to_text(const DeviceCheck& check);
std::string to_json(const DeviceCheck& check);  // one object

}  // namespace forerun
