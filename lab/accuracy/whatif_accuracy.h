// WhatIfAccuracy: predicted against measured variants of the same training step, as text and JSON.
//
// A gain is judged by the points that it is off by, in iteration time and in GPU busy time. The second is there because a
// host repeats itself badly: runs that ask the same of the host differ by tens of per cent (HostScatter), so where the host
// decides, a measured gain holds that much noise beside the optimization's effect; GPU busy time repeats to 1 %.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forerun {

enum class WhatIfKind : uint8_t { base, variant, batch };  // batch: another batch size, which is no optimization

struct StepTimes {
  double ms = 0, gpu_ms = 0;  // of an iteration, and of its kernels together
};

struct WhatIfCase {
  std::string model;
  std::string variant;  // "amp + fused_adam", "base"
  WhatIfKind kind = WhatIfKind::variant;
  bool trained_on = false;  // the cost models learned from this run
  bool gpu_bound = false;   // both the base and the variant, as measured
  StepTimes measured_base, measured;
  StepTimes predicted_base, predicted;
  double low_ms = 0, high_ms = 0;  // the stated range

  [[nodiscard]] double error() const { return predicted.ms / measured.ms - 1; }
  [[nodiscard]] double gpu_error() const { return predicted.gpu_ms / measured.gpu_ms - 1; }
  [[nodiscard]] double measured_gain() const { return 1 - measured.ms / measured_base.ms; }
  [[nodiscard]] double predicted_gain() const { return 1 - predicted.ms / predicted_base.ms; }
  [[nodiscard]] double measured_gpu_gain() const { return 1 - measured.gpu_ms / measured_base.gpu_ms; }
  [[nodiscard]] double predicted_gpu_gain() const { return 1 - predicted.gpu_ms / predicted_base.gpu_ms; }
  [[nodiscard]] double gain_error() const { return predicted_gain() - measured_gain(); }
  [[nodiscard]] double gpu_gain_error() const { return predicted_gpu_gain() - measured_gpu_gain(); }
};

// Host-bound runs of a model that ask the same of the host: as many ops, the same optimizer. What they differ by is noise.
struct HostScatter {
  std::string model;
  int64_t runs = 0;
  double shortest_ms = 0, longest_ms = 0;
};

struct WhatIfAccuracy {
  std::string data;
  std::vector<WhatIfCase> cases;      // of each model the base first
  std::vector<std::string> problems;  // variants that could not be judged, and why
  std::vector<HostScatter> scatter;
};

// Right out of so many.
struct Hits {
  int64_t right = 0, all = 0;
};

// Errors are means and maxima of absolute values; those of gains in shares of 1 (0.05: five points).
struct WhatIfSummary {
  std::string of;
  int64_t cases = 0;
  double mean_error = 0, largest_error = 0, mean_gpu_error = 0;
  double mean_gain_error = 0, largest_gain_error = 0;
  double mean_gpu_gain_error = 0, largest_gpu_gain_error = 0;
  Hits measured_signs;   // measured to gain or lose more than 5 %: the prediction has that sign
  Hits predicted_signs;  // predicted to gain or lose more than 5 %: the measurement has that sign
  Hits ranks;            // pairs of a model's cases with measured gains 5 points apart: in the right order
  Hits covered;          // measured within the stated range
};

WhatIfSummary summary_of(const std::vector<WhatIfCase>& cases, std::string of = {});

// Optimizations: all, of models that nothing learned from, GPU-bound, the others; then batch sizes and bases.
std::vector<WhatIfSummary> summaries_of(const WhatIfAccuracy& accuracy);

std::string to_text(const WhatIfAccuracy& accuracy);
std::string to_json(const WhatIfAccuracy& accuracy);  // one object

}  // namespace forerun
