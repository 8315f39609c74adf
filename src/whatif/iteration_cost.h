// IterationCost: what the cost models say of a whole iteration, by the call of the forward pass that each part stems from.
//
// The iteration is derived from a forward graph (derive/iteration.h) in a precision, layout and optimizer; GPU times come
// from cost/hybrid, host times from cost/host. Two of these for one model tell what a change of setup does to each call.
#pragma once

#include <array>
#include <vector>

#include "whatif/op_timer.h"
#include "whatif/traced_model.h"

namespace forerun::whatif {

struct DerivedIteration {
  Graph graph;
  std::vector<OpCost> costs;
  HostCosts host;                                 // zero where the timer has no host model
  std::shared_ptr<const CompiledParts> compiled;  // null: the model runs eagerly
  std::vector<uint32_t> calls;                    // by op; the model's number of calls where it stems from none
};
Result<DerivedIteration> derived_iteration(const TracedModel& model, double batch_factor, const TrainingSetup& setup,
                                           const OpTimer& timer);

// Nanoseconds.
struct LaneCost {
  double gpu = 0, host = 0;
};

struct IterationCost {
  std::vector<std::array<LaneCost, 2>> calls;  // forward and backward; the last one: the loss and what has no call
  LaneCost update;
  double per_iteration = 0;  // host, besides ops

  [[nodiscard]] LaneCost phase(size_t backward) const;
};
Result<IterationCost> iteration_cost(const TracedModel& model, double batch_factor, const TrainingSetup& setup,
                                     const OpTimer& timer);

}  // namespace forerun::whatif
