// Optimus: every further GPU goes to the job whose predicted completion it brings forward most.
//
// Works with the job's predicted remaining time and its speed by GPUs (measured step times where the workload has them,
// else in proportion). Rounds are every 10 minutes at most (option `interval`, seconds). Left out: parameter servers, which
// Optimus hands out beside workers.
#include "cluster/policies/elastic_shares.h"
#include "cluster/policies/factories.h"

namespace forerun::cluster {
namespace {

struct TimeSaved {
  static double gain(const ClusterView& view, JobIndex job, TypeIndex type, int32_t gpus) {
    const double remaining = seconds(std::max(view.predicted_remaining(job, type), kSecond));
    return remaining / view.predicted_speed(job, type, gpus) - remaining / view.predicted_speed(job, type, gpus + 1);
  }
};

}  // namespace

std::unique_ptr<Policy> make_optimus(OptionReader& options) {
  const Time interval = time_from_seconds(options.number("interval", 600, 0, kLongestRound));
  return std::make_unique<ElasticShares<TimeSaved>>(TimeSaved(), interval);
}

}  // namespace forerun::cluster
