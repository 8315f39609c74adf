#include "report/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {

std::string applied_text(const std::vector<std::string>& applied) {
  std::string text;
  for (const std::string& name : applied) text += (text.empty() ? "" : " + ") + name;
  return text.empty() ? "nothing" : text;
}

std::vector<std::string> shared_assumptions(const std::vector<WhatIfAnswer>& answers) {
  std::vector<std::string> shared;
  for (const std::string& assumption : answers.front().assumptions) {
    const bool everywhere = std::all_of(answers.begin(), answers.end(), [&](const WhatIfAnswer& answer) {
      return std::find(answer.assumptions.begin(), answer.assumptions.end(), assumption) != answer.assumptions.end();
    });
    if (everywhere) shared.push_back(assumption);
  }
  return shared;
}

std::string to_text(const WhatIfAnswer& answer) {
  std::string text = fmt::format("{}\n", answer.file);
  const char* base = !answer.traced      ? "iteration as predicted"
                     : answer.unprofiled ? "iteration without the profiler"
                                         : "iteration as traced";
  text +=
      fmt::format("  {:<33} {:>10.3f} ms   (kernels {:.3f} ms)\n", base, answer.baseline_ms, answer.baseline_gpu_ms);
  text += fmt::format("  with {:<28} {:>10.3f} ms   (kernels {:.3f} ms), {:.3f} to {:.3f} ms\n",
                      applied_text(answer.applied), answer.predicted_ms, answer.predicted_gpu_ms, answer.low_ms,
                      answer.high_ms);
  text += fmt::format("  {:.1f} % {}\n", 100 * std::abs(answer.gain()), answer.gain() >= 0 ? "less" : "more");
  for (const std::string& assumption : answer.assumptions) text += fmt::format("  assumed: {}\n", assumption);
  return text;
}

std::string to_json(const WhatIfAnswer& answer) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.whatif/1")
      .field("file", answer.file)
      .field("applied", answer.applied)
      .field("baseline_ms", answer.baseline_ms)
      .field("predicted_ms", answer.predicted_ms)
      .field("low_ms", answer.low_ms)
      .field("high_ms", answer.high_ms)
      .field("baseline_gpu_ms", answer.baseline_gpu_ms)
      .field("predicted_gpu_ms", answer.predicted_gpu_ms)
      .field("unprofiled", answer.unprofiled)
      .field("assumptions", answer.assumptions);
  return json.end_object().take();
}

std::string to_text(const std::vector<WhatIfAnswer>& ranking) {
  if (ranking.empty()) return "no optimization applies\n";
  Table table({"optimization", "before ms", "after ms", "range ms", "gain"});
  for (const WhatIfAnswer& answer : ranking) {
    table.add({applied_text(answer.applied), fmt::format("{:.3f}", answer.baseline_ms),
               fmt::format("{:.3f}", answer.predicted_ms),
               fmt::format("{:.3f} to {:.3f}", answer.low_ms, answer.high_ms), signed_percent(answer.gain())});
  }
  std::string text = table.text();
  // What all assume comes once; the rest by optimization.
  const std::vector<std::string> shared = shared_assumptions(ranking);
  for (const std::string& assumption : shared) text += fmt::format("assumed: {}\n", assumption);
  for (const WhatIfAnswer& answer : ranking) {
    for (const std::string& assumption : answer.assumptions) {
      if (std::find(shared.begin(), shared.end(), assumption) != shared.end()) continue;
      text += fmt::format("assumed for {}: {}\n", applied_text(answer.applied), assumption);
    }
  }
  return text;
}

}  // namespace forerun
