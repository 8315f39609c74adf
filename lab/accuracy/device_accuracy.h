// How well times carry over to GPUs that nothing was measured on, as text and JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

inline constexpr const char* kNeuSight = "NeuSight";
inline constexpr const char* kLambda = "Lambda";

// A model that others ran on another GPU.
struct OtherGpuRun {
  std::string gpu;
  std::string model;
  std::string what;  // "forward", "forward, backward", "training"
  int64_t batch = 0;
  int64_t length = 0;
  double measured_ms = 0;
  double predicted_ms = 0;
  std::string source = {};  // "NeuSight", "Lambda"
};

// The runs of one source on one GPU, together.
struct OtherGpuError {
  std::string gpu;
  std::string source;  // "NeuSight"
  int64_t runs = 0;
  double mre = 0;
  double bias = 0;                  // mean of predicted / measured - 1
  std::optional<double> published;  // mean error that the source's authors print for their own predictor there
};

struct DeviceAccuracy {
  hybrid::DeviceScale scale;                 // fitted to all GPUs
  std::vector<hybrid::CarriedError> plain;   // by the analytic model's ratio alone
  std::vector<hybrid::CarriedError> fitted;  // each GPU by a fit to the others
  std::vector<OtherGpuRun> runs;             // the same
  RatioInterval range;                       // eight of ten of those runs, where every GPU counts the same
  std::map<std::string, double> neusight;    // by GPU: the mean error that NeuSight's authors print for it there
  std::vector<std::string> problems;         // what could not be checked
};

std::vector<OtherGpuError> errors_by_gpu(const DeviceAccuracy& accuracy);

std::string to_text(const DeviceAccuracy& accuracy);
std::string to_json(const DeviceAccuracy& accuracy);  // one object

}  // namespace forerun
