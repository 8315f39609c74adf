// Hydra: no more tardiness than must be, then the least mean completion time, on unlike GPUs (deadline_plan.h).
//
// Beyond the published method: jobs may arrive at any time (each arrival asks for a new plan) and may be gangs. A gang
// is planned on one GPU for as long as its whole GPU time; its deadline there is later by what that overstates. The order
// that gives is then played forward with whole gangs, as are earliest deadline first and shortest first, each with and
// without skipping what does not fit, and the best of them is improved and taken (gang_playout.h).
// Option nodes: of branch and bound in one queue. Option steps: of improvement per plan, at most; a plan made for few
// arrivals gets fewer.
#include <algorithm>

#include "cluster/deadline_plan.h"
#include "cluster/policies/factories.h"
#include "cluster/policies/planned_queues.h"

namespace forerun::cluster {
namespace {

constexpr int64_t kStepsPerArrival = 20'000;

class Hydra final : public PlannedQueues {
 public:
  explicit Hydra(DeadlinePlanOptions options) : options_(options) {}

 protected:
  std::vector<QueuePlace> plan(const ClusterView& view, const std::vector<JobIndex>& jobs,
                               const QueueProblem& queues) override {
    DeadlineProblem problem;
    problem.queues = queues;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const Time deadline = view.job(jobs[i]).deadline;
      std::vector<int64_t> by_type(view.types(), kNoDeadline);
      for (TypeIndex type = 0; type < view.types() && deadline != kNever; ++type) {
        if (queues.durations[i][type] == kCannotRun) continue;
        const int64_t alone = view.predicted_remaining(jobs[i], type).value >> coarser();
        by_type[type] = ((deadline - view.now()).value >> coarser()) + queues.durations[i][type] - alone;
      }
      problem.deadlines.push_back(std::move(by_type));
    }
    DeadlinePlanOptions options = options_;
    const auto arrivals = static_cast<int64_t>(std::max<size_t>(arrived_since_plan(), 1));
    options.most_steps = std::min(options.most_steps, kStepsPerArrival * arrivals);
    const std::vector<QueuePlace> places = plan_with_deadlines(problem, options).places;
    return any_gang(view, jobs) ? with_gangs(view, jobs, places, true) : places;
  }

 private:
  DeadlinePlanOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_hydra(OptionReader& options) {
  DeadlinePlanOptions plan;
  plan.most_nodes = static_cast<int>(options.whole("nodes", plan.most_nodes, 0, 1e9));
  plan.most_steps = options.whole("steps", 3'000'000, 0, 1e15);
  return std::make_unique<Hydra>(plan);
}

}  // namespace forerun::cluster
