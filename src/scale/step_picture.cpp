#include "scale/step_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "scale/step_parts.h"

namespace forerun::scale {
namespace {

StepEventKind kind_of(const PipelinePass& pass) {
  if (pass.weights) return StepEventKind::weights;
  return pass.backward ? StepEventKind::backward : StepEventKind::forward;
}

}  // namespace

std::string_view name_of(StepEventKind kind) {
  switch (kind) {
    case StepEventKind::forward: return "forward";
    case StepEventKind::backward: return "backward";
    case StepEventKind::weights: return "gradients of weights";
    case StepEventKind::exchange: return "exchange";
    case StepEventKind::update: return "update";
  }
  return "";
}

Result<StepPicture> picture_of(const CostSource& source, const StepSetup& setup, const Step& step) {
  const Plan& plan = step.plan;
  const int64_t passes = 3 * plan.pipeline * plan.chunks * plan.micro_batches;
  if (passes > kMostDrawnPasses) {
    return Error{fmt::format("the step has about {} passes, too many to draw", passes), "--timeline",
                 "take a smaller --global-batch: the schedule repeats"};
  }
  const auto parts = parts_of(source, setup, plan);
  if (!parts) return parts.error();
  const auto ends = pass_ends(parts->times, parts->shape, parts->hop);
  const Network network(setup.cluster, efficiency_of(setup, plan));
  StepPicture picture;
  for (int64_t d = 0; d < plan.pipeline; ++d) {
    const std::vector<PipelinePass> order = device_order(parts->shape, d);
    const std::vector<Nanoseconds>& passed = ends[static_cast<size_t>(d)];
    for (size_t i = 0; i < order.size(); ++i) {
      const PipelinePass& pass = order[i];
      const StageTimes& times = parts->times[static_cast<size_t>(pass.chunk * plan.pipeline + d)];
      const Nanoseconds duration = duration_of(pass, times, parts->shape, d);
      picture.events.push_back({.kind = kind_of(pass),
                                .stage = d,
                                .micro_batch = pass.micro_batch,
                                .chunk = pass.chunk,
                                .begin = passed[i] - duration,
                                .duration = duration});
    }
    const Nanoseconds end = passed.back();
    const std::vector<Block> held = held_by(*parts, plan, d);
    // Of one stage the step itself knows the exchange better, gradient by gradient.
    const Result<ExchangeTimes> sent = plan.pipeline == 1
                                           ? Result<ExchangeTimes>(ExchangeTimes{step.exchange, step.exposed})
                                           : exchange_among(held, plan, setup, network);
    if (!sent) return sent.error();
    const Nanoseconds exchanged = end + sent->exposed;
    const Nanoseconds length = std::min(sent->exchange, exchanged);
    if (length > Nanoseconds()) {
      picture.events.push_back(
          {.kind = StepEventKind::exchange, .stage = d, .begin = exchanged - length, .duration = length});
    }
    picture.events.push_back({.kind = StepEventKind::update,
                              .stage = d,
                              .begin = exchanged,
                              .duration = update_of(parts->costs, held, plan, setup)});
  }
  picture.memory = memory_by_device(parts->costs.blocks, parts->stages, plan, setup.bytes);
  if (plan.pipeline == 1) picture.memory = {step.memory};
  return picture;
}

}  // namespace forerun::scale
