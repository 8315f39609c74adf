// WhatIfAccuracy: predicted against measured variants of the same training step, as text and JSON.
#pragma once

#include <string>
#include <vector>

namespace forerun {

struct WhatIfCase {
  std::string model;
  std::string variant;  // "amp + fused_adam"
  double measured_base_ms = 0, measured_ms = 0;
  double predicted_base_ms = 0, predicted_ms = 0;
  double low_ms = 0, high_ms = 0;
  double measured_gpu_ms = 0, predicted_gpu_ms = 0;

  [[nodiscard]] double error() const { return predicted_ms / measured_ms - 1; }
  [[nodiscard]] double measured_gain() const { return 1 - measured_ms / measured_base_ms; }
  [[nodiscard]] double predicted_gain() const { return 1 - predicted_ms / predicted_base_ms; }
};

struct WhatIfAccuracy {
  std::string data;
  std::vector<WhatIfCase> cases;
  std::vector<std::string> problems;  // models that could not be judged
};

struct WhatIfSummary {
  double mean_error = 0, largest_error = 0, mean_gpu_error = 0;
  int64_t signs_right = 0, signs = 0;  // of variants that gained more than 5 %: a gain was predicted
  int64_t ranks_right = 0,
          ranks = 0;    // pairs of a model's variants, gains above 5 % and 5 points apart: the right order
  int64_t covered = 0;  // measured within the stated range
};
WhatIfSummary summary_of(const WhatIfAccuracy& accuracy);

std::string to_text(const WhatIfAccuracy& accuracy);
std::string to_json(const WhatIfAccuracy& accuracy);  // one object

}  // namespace forerun
