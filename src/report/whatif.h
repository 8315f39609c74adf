// WhatIfAnswer: what optimizations would bring to an iteration, traced or predicted; as text and JSON.
#pragma once

#include <string>
#include <vector>

namespace forerun {

struct WhatIfAnswer {
  std::string file;
  std::vector<std::string> applied;  // as given: "batch:factor=2"
  double baseline_ms = 0;            // simulated, nothing applied
  double predicted_ms = 0;
  double low_ms = 0, high_ms = 0;                    // eight of ten measurements should lie between
  double baseline_gpu_ms = 0, predicted_gpu_ms = 0;  // sum of kernels
  bool traced = true;                                // or predicted from a model
  bool unprofiled = true;                            // the profiler's part was taken out
  std::vector<std::string> assumptions;

  [[nodiscard]] double gain() const { return baseline_ms > 0 ? 1 - predicted_ms / baseline_ms : 0; }
};

std::string to_text(const WhatIfAnswer& answer);
std::string to_json(const WhatIfAnswer& answer);                // one line
std::string to_text(const std::vector<WhatIfAnswer>& ranking);  // one line each, the largest gain first

}  // namespace forerun
