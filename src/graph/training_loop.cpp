#include "graph/training_loop.h"

#include <array>
#include <utility>

namespace forerun {
namespace {

constexpr std::array<std::pair<TrainingLoop, std::string_view>, kTrainingLoops> kLoops = {
    {{TrainingLoop::plain, "plain"},
     {TrainingLoop::trainer, "trainer"},
     {TrainingLoop::lightning, "lightning"},
     {TrainingLoop::accelerate, "accelerate"}}};

}  // namespace

LoopRules rules_of(TrainingLoop loop) {
  switch (loop) {
    case TrainingLoop::plain: break;
    case TrainingLoop::trainer:
      return {.waits_for_batch = true,
              .waits_for_loss = true,
              .widens_results = true,
              .clip_norm = 1,
              .prefers_fused_adamw = true};
    case TrainingLoop::lightning: return {.keeps_gradients = true};
    case TrainingLoop::accelerate: return {.waits_for_batch = true, .widens_results = true};
  }
  return {};
}

std::string_view name_of(TrainingLoop loop) { return kLoops[static_cast<size_t>(loop)].second; }

std::optional<TrainingLoop> training_loop_named(std::string_view name) {
  for (const auto& [loop, known] : kLoops) {
    if (known == name) return loop;
  }
  return std::nullopt;
}

}  // namespace forerun
