// StepPicture: a step as it passes, stage by stage: what the GPUs of each stage run and send, and what memory they need.
//
// Passes are those of the pipeline's schedule (pipeline.h). The exchange of gradients (with ZeRO 2 and 3 of
// parameters too) is drawn as one stretch that ends where the update begins, however many messages it has.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "scale/memory_use.h"
#include "scale/step.h"

namespace forerun::scale {

enum class StepEventKind : uint8_t { forward, backward, weights, exchange, update };
std::string_view name_of(StepEventKind kind);

struct StepEvent {
  StepEventKind kind = StepEventKind::forward;
  int64_t stage = 0;
  int64_t micro_batch = 0;  // of passes
  int64_t chunk = 0;        // the same
  Nanoseconds begin;
  Nanoseconds duration;
};

struct StepPicture {
  std::vector<StepEvent> events;
  std::vector<MemoryUse> memory;  // by stage
};

inline constexpr int64_t kMostDrawnPasses = 200'000;

// Of an estimated step. An Error where it has more passes than can be drawn.
Result<StepPicture> picture_of(const CostSource& source, const StepSetup& setup, const Step& step);

}  // namespace forerun::scale
