// How well times carry over to GPUs that nothing was measured on, as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/hybrid/device_scale.h"
#include "cost/hybrid/prediction_intervals.h"

namespace forerun {

namespace hybrid {

// How well one kind of op is predicted on one GPU.
struct CarriedError {
  std::string gpu;
  std::string kind;
  int64_t ops = 0;
  double mre = 0;
  double ratio = 1;  // median of measured / predicted time
};

}  // namespace hybrid

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

struct DeviceAccuracy {
  hybrid::DeviceScale scale;                 // fitted to all GPUs
  std::vector<hybrid::CarriedError> plain;   // by the analytic model's ratio alone
  std::vector<hybrid::CarriedError> fitted;  // each GPU by a fit to the others
  std::vector<OtherGpuRun> runs;             // the same
  RatioInterval range;                       // eight of ten of those runs
  std::vector<std::string> problems;         // what could not be checked
};

std::string to_text(const DeviceAccuracy& accuracy);
std::string to_json(const DeviceAccuracy& accuracy);  // one object

}  // namespace forerun
