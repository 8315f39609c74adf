// AlloX: the least mean completion time on unlike GPUs, by a min-cost matching of waiting jobs to places in the queues
// of all GPUs (assignment.h).
//
// Beyond the published method: jobs may be gangs, whose order is that of the matching played forward with whole gangs, or
// shortest first where that comes out better.
//
// Option alpha (0 to 1, 1 by default): only jobs of the least-served share alpha of the users that wait take part in the
// matching; the share is doubled while GPUs stay idle. A user's service is the GPU time that its jobs have held.
#include <algorithm>
#include <cmath>
#include <map>

#include "cluster/policies/factories.h"
#include "cluster/policies/planned_queues.h"
#include "cluster/service.h"

namespace forerun::cluster {
namespace {

class Allox final : public PlannedQueues {
 public:
  explicit Allox(double alpha) : alpha_(alpha) {}

  void finished(const ClusterView& view, JobIndex job) override {
    served_[view.job(job).user] += service_of(view, job);
    PlannedQueues::finished(view, job);
  }

 protected:
  std::vector<QueuePlace> plan(const ClusterView& view, const std::vector<JobIndex>& jobs,
                               const QueueProblem& problem) override {
    std::vector<QueuePlace> places = assign_to_queues(problem);
    return any_gang(view, jobs) ? with_gangs(view, jobs, places, false) : places;
  }

  std::vector<JobIndex> candidates(const ClusterView& view, int round) override {
    if (alpha_ >= 1) return PlannedQueues::candidates(view, round);
    const std::vector<int32_t> users = least_served_first(view);
    const double share = std::ceil(alpha_ * static_cast<double>(users.size())) * std::exp2(round);
    if (round > 0 && (share >= 2 * static_cast<double>(users.size()) || !any_idle(view))) return {};
    const auto chosen = std::min(users.size(), static_cast<size_t>(std::max(share, 1.0)));
    std::vector<JobIndex> jobs;
    for (const JobIndex job : waiting()) {
      const auto end = users.begin() + static_cast<std::ptrdiff_t>(chosen);
      if (std::find(users.begin(), end, view.job(job).user) != end) jobs.push_back(job);
    }
    return jobs;
  }

  [[nodiscard]] bool always_replans() const override { return alpha_ < 1; }

 private:
  static double service_of(const ClusterView& view, JobIndex job) {
    return seconds(view.attained(job)) * view.job(job).gpus;
  }

  static bool any_idle(const ClusterView& view) {
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (view.free(type) > 0) return true;
    }
    return false;
  }

  // The users that have jobs waiting; ties by their number.
  std::vector<int32_t> least_served_first(const ClusterView& view) const {
    std::map<int32_t, double> service;
    for (const JobIndex job : waiting()) service[view.job(job).user] = 0;
    for (auto& [user, amount] : service) {
      if (const auto past = served_.find(user); past != served_.end()) amount = past->second;
    }
    for (const Running& run : view.running()) {
      const auto user = service.find(view.job(run.job).user);
      if (user != service.end()) user->second += service_of(view, run.job);
    }
    std::vector<std::pair<double, int32_t>> order;
    for (const auto& [user, amount] : service) order.emplace_back(amount, user);
    std::sort(order.begin(), order.end());
    std::vector<int32_t> users;
    for (const auto& [amount, user] : order) users.push_back(user);
    return users;
  }

  double alpha_;
  std::map<int32_t, double> served_;  // by user: GPU seconds of jobs that have ended
};

}  // namespace

std::unique_ptr<Policy> make_allox(OptionReader& options) {
  return std::make_unique<Allox>(options.number("alpha", 1, 0, 1));
}

}  // namespace forerun::cluster
