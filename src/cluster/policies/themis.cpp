// Themis: finish-time fairness. In each round (a lease) GPUs go to the jobs whose time in the system, set against the
// time that they would take on a 1/n share of the cluster, is worst.
//
// rho = (time since arrival + what is left on the best GPUs) / (whole time x contention), contention = GPUs wanted over
// GPUs there are, at least 1. Only the worst share `filter` of the jobs is offered GPUs at first; a job takes its fastest
// type. Left out: the auction in which jobs of one owner trade GPUs.
#include <algorithm>
#include <cmath>

#include "cluster/policies/factories.h"
#include "cluster/policies/rounds.h"

namespace forerun::cluster {
namespace {

class Themis final : public RoundPolicy {
 public:
  Themis(Time lease, double filter) : RoundPolicy(lease), filter_(filter) {}

 protected:
  std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) override {
    double wanted = 0;
    double there = 0;
    for (const JobIndex job : active) wanted += view.job(job).gpus;
    for (TypeIndex type = 0; type < view.types(); ++type) there += view.working(type);
    const double contention = std::max(wanted / std::max(there, 1.0), 1.0);
    std::vector<std::pair<double, JobIndex>> order;
    for (const JobIndex job : active) order.emplace_back(-rho(view, job, contention), job);
    std::sort(order.begin(), order.end());
    const auto offered = static_cast<size_t>(std::ceil(filter_ * static_cast<double>(order.size())));
    std::vector<RoundChoice> result;
    for (size_t i = 0; i < std::min(offered, order.size()); ++i) {
      const JobIndex job = order[i].second;
      std::vector<TypeIndex> types;
      for (TypeIndex type = 0; type < view.types(); ++type) {
        if (view.usable(job, type)) types.push_back(type);
      }
      std::stable_sort(types.begin(), types.end(),
                       [&](TypeIndex a, TypeIndex b) { return view.predicted(job, a) < view.predicted(job, b); });
      for (const TypeIndex type : types) result.push_back({job, type});
    }
    return result;
  }

 private:
  static double rho(const ClusterView& view, JobIndex job, double contention) {
    const double whole = std::max(seconds(view.predicted_fastest(job)), 1e-9);
    double remaining = whole;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (view.usable(job, type)) remaining = std::min(remaining, seconds(view.predicted_remaining(job, type)));
    }
    return (seconds(view.now() - view.job(job).arrival) + remaining) / (whole * contention);
  }

  double filter_;
};

}  // namespace

std::unique_ptr<Policy> make_themis(OptionReader& options) {
  const Time lease = time_from_seconds(std::max(options.number("lease", 1200), 1.0));
  return std::make_unique<Themis>(lease, std::clamp(options.number("filter", 0.8), 0.0, 1.0));
}

}  // namespace forerun::cluster
