// Pollux-style goodput: GPUs are shared so that the harmonic mean of the jobs' speed-ups is as large as greedy steps make
// it, which evens them out: a job that is slow against its stated GPUs gains most from one more.
//
// Speed is that of training with the job's total batch, by GPUs. Left out: Pollux' adaptation of batch and learning rate,
// for which statistical efficiency would have to be known; so goodput is throughput here. Durations are not used. Rounds
// are every minute at most (option `interval`, seconds).
#include "cluster/policies/elastic_shares.h"
#include "cluster/policies/factories.h"

namespace forerun::cluster {
namespace {

struct SpeedUp {
  static double gain(const ClusterView& view, JobIndex job, TypeIndex type, int32_t gpus) {
    return 1 / view.predicted_speed(job, type, gpus) - 1 / view.predicted_speed(job, type, gpus + 1);
  }
};

}  // namespace

std::unique_ptr<Policy> make_goodput(OptionReader& options) {
  const Time interval = time_from_seconds(options.number("interval", 60, 0, kLongestRound));
  return std::make_unique<ElasticShares<SpeedUp>>(SpeedUp(), interval);
}

}  // namespace forerun::cluster
