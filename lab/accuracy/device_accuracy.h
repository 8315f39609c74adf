// How well times carry over to GPUs that nothing was measured on, as text and JSON: the suite gpus.
#pragma once

#include <cmath>
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
  double ratio = 1;     // median of measured / predicted time
  double roofline = 0;  // mean error of the larger of products at the peak rate and bytes at the full bandwidth
  std::optional<double> neusight = {};  // on just these ops, as kept in data/evaluations/other-gpus.json
  std::optional<double> habitat = {};
};

}  // namespace hybrid

inline constexpr const char* kNeuSight = "NeuSight";
inline constexpr const char* kLambda = "Lambda";
inline constexpr const char* kPipeDream = "PipeDream";
inline constexpr const char* kHkbu = "HKBU";
inline constexpr const char* kLlmFoundry = "LLM Foundry";

// A model that others ran on another GPU.
struct OtherGpuRun {
  std::string gpu;
  std::string model;
  std::string what;  // "forward", "backward", "forward, backward", "training"
  int64_t batch = 0;
  int64_t length = 0;
  double measured_ms = 0;
  double predicted_ms = 0;
  std::string source = {};  // "NeuSight", "Lambda", ...
  double yardstick = 1;     // measured over predicted time of the same question on the measured GPU
  Precision precision = Precision::fp32;
  double roofline_ms = 0;     // every op at its unit's peak rate or at the full bandwidth, nothing between them
  bool judged_alone = false;  // other software, and nothing on the measured GPU to tell it by: no range rests on it
  GpuDistance distance = GpuDistance::far;
  bool kin = false;                        // a GPU of the measured one's architecture: judged, never fitted to
  RatioInterval range = {};                // that runs of other chips give its distance
  std::optional<double> neusight_ms = {};  // what NeuSight and Habitat (mean error over origins) said, trained without
  std::optional<double> habitat_error = {};  // the GPU, as kept in data/evaluations/other-gpus.json

  // Measured over predicted time, the software apart.
  [[nodiscard]] double ratio() const { return measured_ms / predicted_ms / yardstick; }
  [[nodiscard]] double error() const { return std::abs(1 / ratio() - 1); }
  [[nodiscard]] double roofline_error() const { return std::abs(roofline_ms / measured_ms - 1); }
  [[nodiscard]] bool is_held() const { return ratio() >= range.low && ratio() <= range.high; }
};

// The runs of one source on one GPU, together.
struct OtherGpuError {
  std::string gpu;
  std::string source;  // "NeuSight"
  int64_t runs = 0;
  double mre = 0;
  double bias = 0;                 // mean of predicted / measured - 1
  double held = 0;                 // share of the runs within their range
  double roofline = 0;             // mean error of the roofline
  std::optional<double> neusight;  // the same, on the same runs
  std::optional<double> habitat;
  std::optional<double> published;  // mean error that the source's authors print for their own predictor there
};

struct DeviceAccuracy {
  std::string date;                          // when it was judged,
  std::string fingerprint;                   // and with which cost models (predict/carried_models.h)
  hybrid::DeviceScale scale;                 // fitted to all GPUs
  std::vector<hybrid::CarriedError> fitted;  // each GPU by a fit to the others
  std::vector<OtherGpuRun> runs;             // the same
  PredictionIntervals ranges;              // of other GPUs: eight of ten of those runs, where every GPU counts the same
  std::map<std::string, double> neusight;  // by GPU: the mean error that NeuSight's authors print for it there
  std::vector<std::string> problems;       // what could not be checked
};

std::vector<OtherGpuError> errors_by_gpu(const DeviceAccuracy& accuracy);

// What all GPUs give together, of kinds of ops (a GPU counts as much as another) and of runs.
struct GpusSummary {
  std::map<std::string, double> ops;                  // by kind, those in models apart: mean error
  OtherGpuError runs;                                 // of NeuSight, which the bar is about
  OtherGpuError kin;                                  // of GPUs of the measured one's architecture
  OtherGpuError others;                               // of all other runs of Lambda's
  std::map<std::string, OtherGpuError> judged_alone;  // by source
};
GpusSummary summary_of(const DeviceAccuracy& accuracy);

std::string to_text(const DeviceAccuracy& accuracy);
std::string to_json(const DeviceAccuracy& accuracy);  // one object

}  // namespace forerun
