// TimeParts: what the time of an iteration, or of a whole job, is spent on: computation, memory access and communication, as
// DeletePop splits it, and what is none of these.
//
// An op counts whole by what limits it: arithmetic, bytes of the GPU's memory, or neither (latency: too short to fill the GPU).
// What no kernel takes is idle: the GPU waits for the host, or for the next kernel to begin.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "cost/op_cost.h"

namespace forerun {

struct TimeParts {
  Nanoseconds computation;
  Nanoseconds memory_access;
  Nanoseconds latency;
  Nanoseconds idle;
  Nanoseconds communication;  // that nothing hides
  Nanoseconds bubble;         // waiting for other stages of a pipeline

  static constexpr size_t kCount = 6;
  // Each with its name, in the order above.
  [[nodiscard]] std::array<std::pair<std::string_view, Nanoseconds>, kCount> named() const;
  [[nodiscard]] Nanoseconds total() const;

  // The same shares of another total, to the nanosecond. All of it is idle where there are no shares.
  [[nodiscard]] TimeParts of(Nanoseconds another) const;
};

// Of ops that run one after another within `time`.
TimeParts time_parts(std::span<const OpCost> costs, Nanoseconds time);

}  // namespace forerun
