// Themis: finish-time fairness. In each round (a lease) the jobs that are worst off bid for GPUs in an auction
// (cluster/auction.h) that makes the product of 1 / rho largest; what a winner pays is taken off the end of its lease, if
// others wait, and goes to those in order of arrival.
//
// rho = (time since arrival + what is left) / (whole time on the best GPUs x contention), contention = GPUs wanted over
// GPUs there are, at least 1. A job bids for its gang on every type that it can run on; without GPUs in this lease its time
// left is one lease longer. Only the worst share `filter` of the jobs takes part.
#include <algorithm>
#include <cmath>
#include <map>

#include "cluster/auction.h"
#include "cluster/policies/factories.h"
#include "cluster/policies/rounds.h"

namespace forerun::cluster {
namespace {

class Themis final : public RoundPolicy {
 public:
  Themis(Time lease, double filter) : RoundPolicy(lease), filter_(filter) {}

 protected:
  std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) override {
    std::vector<std::pair<double, JobIndex>> order;
    for (const JobIndex job : active) order.emplace_back(-rho(view, job, 0), job);
    std::sort(order.begin(), order.end());
    const auto offered = static_cast<size_t>(std::ceil(filter_ * static_cast<double>(order.size())));
    order.resize(std::min(std::max<size_t>(offered, 1), order.size()));
    std::vector<AuctionBid> bids;
    for (const auto& [worst, job] : order) {
      for (const TypeIndex type : types_by_speed(view, job)) {
        const double gain = rho(view, job, seconds(round())) / rho_on(view, job, type);
        bids.push_back({job, type, view.job(job).gpus, gain});
      }
    }
    std::vector<int32_t> gpus;
    for (TypeIndex type = 0; type < view.types(); ++type) gpus.push_back(view.working(type));
    keeps_.clear();
    std::vector<RoundChoice> result;
    for (const AuctionWin& win : run_auction(bids, gpus)) {
      const AuctionBid& bid = bids[win.bid];
      result.push_back({bid.bidder, bid.type});
      keeps_[bid.bidder] = later(view.now(), time_from_seconds(win.keep * seconds(round())));
    }
    return result;
  }

  Time lease_end(JobIndex job) const override {
    const auto found = keeps_.find(job);
    return found == keeps_.end() ? kNever : found->second;
  }

 private:
  // By the time left on its best GPUs and `delay` seconds before it gets any. The contention is the same for all, so it
  // does not change who is worst off, nor any gain.
  static double rho(const ClusterView& view, JobIndex job, double delay) {
    double remaining = seconds(view.predicted_fastest(job));
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (view.usable(job, type)) remaining = std::min(remaining, seconds(view.predicted_remaining(job, type)));
    }
    return in_system(view, job, remaining + delay);
  }
  static double rho_on(const ClusterView& view, JobIndex job, TypeIndex type) {
    return in_system(view, job, seconds(view.predicted_remaining(job, type)));
  }
  static double in_system(const ClusterView& view, JobIndex job, double remaining) {
    const double whole = std::max(seconds(view.predicted_fastest(job)), 1e-9);
    return std::max((seconds(view.now() - view.job(job).arrival) + remaining) / whole, 1e-9);
  }

  double filter_;
  std::map<JobIndex, Time> keeps_;  // until when winners keep their GPUs
};

}  // namespace

std::unique_ptr<Policy> make_themis(OptionReader& options) {
  const Time lease = time_from_seconds(options.number("lease", 1200, 1, kLongestRound));
  return std::make_unique<Themis>(lease, options.number("filter", 0.8, 0.001, 1));
}

}  // namespace forerun::cluster
