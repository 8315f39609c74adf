// Between which times most measured steps lie, and what of a plan no published run tells of.
//
// The range is composed of that of computation, which the caller knows, of the exchange that shows, and of what grows with the
// number of nodes (stragglers, congestion), which the expected time leaves out. The constants hold eight of ten of the runs to look
// at in data/scale/published_runs.json (`forerun eval --suite published-runs`). A plan that rests on something no published run
// tells of says so, and its range reaches further.
#pragma once

#include <string>
#include <vector>

#include "scale/network.h"
#include "scale/plan.h"

namespace forerun::scale {

struct Step;
struct StepSetup;

// Measured over predicted time of computation, for eight of ten iterations.
struct RatioRange {
  double low = 1, high = 1;
};

// What of the plan was never validated, each in a few words; empty: nothing. `megatron`: Megatron-LM trains
// it. `width`: of its layers; 0: not told.
std::vector<std::string> unvalidated_parts(const Plan& plan, const GpuCluster& cluster, bool megatron,
                                           int64_t width = 0);

// Sets `low`, `high` and `unvalidated` of a step by its times.
void set_range(Step& step, const StepSetup& setup);

}  // namespace forerun::scale
