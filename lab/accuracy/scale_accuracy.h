// How well the step of many GPUs is predicted: one line for each way the GPUs were used, measured iterations that
// constants were fitted to apart from those that are predicted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/quantity.h"

namespace forerun {

struct ScaleCase {
  std::string group;  // "tp 2 dp 2 pp 2"
  int64_t gpus = 0;
  bool fitted = false;
  Nanoseconds measured;
  Nanoseconds predicted;

  [[nodiscard]] double error() const;  // of the prediction, relative to what was measured
};

struct ScaleAccuracy {
  std::string suite;  // vtrain, megatron, llm-foundry
  std::string title;
  std::string reference;  // what others reached
  std::vector<ScaleCase> cases;
  int64_t machine = 0;  // GPUs of one, where iterations on one and on several are told apart

  [[nodiscard]] bool several_machines(const ScaleCase& c) const { return machine > 0 && c.gpus > machine; }
  [[nodiscard]] double mean_error(bool fitted, bool several = false) const;
};

std::string to_text(const ScaleAccuracy& accuracy);
std::string to_json(const ScaleAccuracy& accuracy);

}  // namespace forerun
