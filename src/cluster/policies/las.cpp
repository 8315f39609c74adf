// Discretised 2D-LAS, after Tiresias: least attained service first, where service is GPUs x time held so far.
//
// Jobs start in queue 0 and sink to the next when their service passes a threshold; a lower queue number goes first, and
// within a queue the order is that of arrival. No prediction is used. The thresholds are options (q1, q2: GPU seconds);
// the defaults are 1 and 10 GPU hours. Left out: Tiresias' promotion of starving jobs, which it has off by default.
#include <fmt/format.h>

#include "cluster/policies/factories.h"
#include "cluster/policies/preemptive_walk.h"
#include "cluster/service.h"

namespace forerun::cluster {
namespace {

class AttainedService {
 public:
  static constexpr bool kKeysDrift = false;

  explicit AttainedService(std::vector<Time> thresholds) : thresholds_(std::move(thresholds)) {}

  [[nodiscard]] int64_t key(const ClusterView& view, JobIndex job) const {
    return queue_of(gpu_time(view.attained(job), view.job(job).gpus));
  }

  Time renew(const ClusterView& view, Walked& run) const {
    if (run.change > view.now()) return run.change;
    const Time attained = view.attained(run.job);
    run.key = queue_of(gpu_time(attained, run.gpus));
    if (run.key == static_cast<int64_t>(thresholds_.size())) return kNever;
    const int64_t threshold = thresholds_[static_cast<size_t>(run.key)].value;
    const Time needed((threshold - 1) / run.gpus + 1);
    return later(view.now(), std::max(needed - attained, Time(1)));
  }

  static void finished(const ClusterView& /*view*/, JobIndex /*job*/) {}

 private:
  [[nodiscard]] int64_t queue_of(int64_t service) const {
    int64_t queue = 0;
    while (queue < static_cast<int64_t>(thresholds_.size()) &&
           service >= thresholds_[static_cast<size_t>(queue)].value) {
      ++queue;
    }
    return queue;
  }
  std::vector<Time> thresholds_;  // ascending
};

}  // namespace

std::unique_ptr<Policy> make_las(OptionReader& options) {
  const double first = options.number("q1", 3600, 0, 9e9);
  const double second = options.number("q2", 36000, 0, 9e9);
  if (second < first) options.refuse(fmt::format("q1={} is more than q2={}", first, second));
  std::vector<Time> thresholds = {time_from_seconds(first), time_from_seconds(second)};
  return std::make_unique<PreemptiveWalk<AttainedService>>(AttainedService(std::move(thresholds)));
}

}  // namespace forerun::cluster
