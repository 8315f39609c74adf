// Shortest remaining time, or service, first with whatever fits: the preemptive walk by predicted time left, or by that
// times the GPUs of the gang.
#include "cluster/policies/factories.h"
#include "cluster/policies/preemptive_walk.h"
#include "cluster/service.h"

namespace forerun::cluster {
namespace {

int64_t least_remaining(const ClusterView& view, JobIndex job) {
  Time least = kNever;
  for (TypeIndex type = 0; type < view.types(); ++type) least = std::min(least, view.predicted_remaining(job, type));
  return least.value;
}

struct RemainingTime {
  static constexpr bool kKeysDrift = true;
  [[nodiscard]] static int64_t key(const ClusterView& view, JobIndex job) { return least_remaining(view, job); }
  static Time renew(const ClusterView& view, Walked& run) {
    run.key = std::max(view.running(run.job).predicted_end - view.now(), Time(0)).value;
    return kNever;  // running jobs keep their order and their lead: only arrivals and ends matter
  }
  static void finished(const ClusterView& /*view*/, JobIndex /*job*/) {}
};

struct RemainingService {
  static constexpr bool kKeysDrift = true;
  [[nodiscard]] static int64_t key(const ClusterView& view, JobIndex job) {
    return gpu_time(Time(least_remaining(view, job)), view.job(job).gpus);
  }
  static Time renew(const ClusterView& view, Walked& run) {
    const Time left = std::max(view.running(run.job).predicted_end - view.now(), Time(0));
    run.key = gpu_time(left, run.gpus);
    return kNever;
  }
  static void finished(const ClusterView& /*view*/, JobIndex /*job*/) {}
};

}  // namespace

std::unique_ptr<Policy> make_srtf_skip(OptionReader& /*options*/) {
  return std::make_unique<PreemptiveWalk<RemainingTime>>(RemainingTime());
}
std::unique_ptr<Policy> make_srsf_preempt(OptionReader& /*options*/) {
  return std::make_unique<PreemptiveWalk<RemainingService>>(RemainingService());
}

}  // namespace forerun::cluster
