#include "lab/accuracy/whatif_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr double kGain = 0.05;  // below it a difference is noise

}  // namespace

WhatIfSummary summary_of(const WhatIfAccuracy& accuracy) {
  WhatIfSummary sum;
  const auto& cases = accuracy.cases;
  for (size_t i = 0; i < cases.size(); ++i) {
    const WhatIfCase& c = cases[i];
    const double error = std::abs(c.error());
    sum.mean_error += error / static_cast<double>(cases.size());
    sum.largest_error = std::max(sum.largest_error, error);
    sum.mean_gpu_error += std::abs(c.predicted_gpu_ms / c.measured_gpu_ms - 1) / static_cast<double>(cases.size());
    sum.covered += c.low_ms <= c.measured_ms && c.measured_ms <= c.high_ms ? 1 : 0;
    if (c.measured_gain() > kGain) {
      ++sum.signs;
      sum.signs_right += c.predicted_gain() > 0 ? 1 : 0;
    }
    for (size_t k = i + 1; k < cases.size(); ++k) {
      const WhatIfCase& other = cases[k];
      const double apart = c.measured_gain() - other.measured_gain();
      const bool gains = c.measured_gain() > kGain && other.measured_gain() > kGain;
      if (other.model != c.model || !gains || std::abs(apart) <= kGain) continue;
      ++sum.ranks;
      sum.ranks_right += (apart > 0) == (c.predicted_gain() > other.predicted_gain()) ? 1 : 0;
    }
  }
  return sum;
}

std::string to_text(const WhatIfAccuracy& accuracy) {
  Table table({"model", "variant", "measured ms", "predicted ms", "range ms", "error", "gain measured", "predicted",
               "kernels' error"});
  table.align_left(1);
  for (const WhatIfCase& c : accuracy.cases) {
    table.add({c.model, c.variant, fmt::format("{:.2f}", c.measured_ms), fmt::format("{:.2f}", c.predicted_ms),
               fmt::format("{:.1f} to {:.1f}", c.low_ms, c.high_ms), fmt::format("{:+.1f} %", 100 * c.error()),
               fmt::format("{:+.1f} %", 100 * c.measured_gain()), fmt::format("{:+.1f} %", 100 * c.predicted_gain()),
               fmt::format("{:+.1f} %", 100 * (c.predicted_gpu_ms / c.measured_gpu_ms - 1))});
  }
  const WhatIfSummary sum = summary_of(accuracy);
  std::string text = fmt::format("{}\n{}", accuracy.data, table.text());
  text += fmt::format("{} variants: mean error {:.1f} %, largest {:.1f} %; kernels' sum {:.1f} %\n",
                      accuracy.cases.size(), 100 * sum.mean_error, 100 * sum.largest_error, 100 * sum.mean_gpu_error);
  text += fmt::format(
      "gains above 5 %: sign right {} of {}, order right {} of {} pairs; measured within the range {} of {}\n",
      sum.signs_right, sum.signs, sum.ranks_right, sum.ranks, sum.covered, accuracy.cases.size());
  for (const std::string& problem : accuracy.problems) text += fmt::format("not judged: {}\n", problem);
  return text;
}

std::string to_json(const WhatIfAccuracy& accuracy) {
  using Json = nlohmann::ordered_json;
  Json cases = Json::array();
  for (const WhatIfCase& c : accuracy.cases) {
    cases.push_back({{"model", c.model},
                     {"variant", c.variant},
                     {"measured_base_ms", c.measured_base_ms},
                     {"measured_ms", c.measured_ms},
                     {"baseline_ms", c.predicted_base_ms},
                     {"predicted_ms", c.predicted_ms},
                     {"low_ms", c.low_ms},
                     {"high_ms", c.high_ms},
                     {"measured_gpu_ms", c.measured_gpu_ms},
                     {"predicted_gpu_ms", c.predicted_gpu_ms},
                     {"error", c.error()}});
  }
  const WhatIfSummary sum = summary_of(accuracy);
  const Json json = {{"schema", eval_schema("whatif")},
                     {"suite", "whatif"},
                     {"data", accuracy.data},
                     {"variants", accuracy.cases.size()},
                     {"mean_error", sum.mean_error},
                     {"largest_error", sum.largest_error},
                     {"mean_gpu_error", sum.mean_gpu_error},
                     {"signs_right", sum.signs_right},
                     {"signs", sum.signs},
                     {"ranks_right", sum.ranks_right},
                     {"ranks", sum.ranks},
                     {"covered", sum.covered},
                     {"problems", accuracy.problems},
                     {"cases", cases}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace forerun
