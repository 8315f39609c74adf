// Gittins index, after Tiresias: the job goes first that is most likely to end soon for the service it still takes, as
// far as the services of jobs that have ended so far tell.
//
// Service is GPUs x time held. It is discretised in steps of a factor 2 from 1 GPU minute; for a job that has
// attained step a, the index is the largest, over all later steps b, of P(ends by b | beyond a) / E(service until b or
// its end | beyond a). The key is its inverse, in GPU nanoseconds. It changes when a job passes into the next step; a
// waiting job keeps the one it had when it began to wait. The table is renewed every 64 ends; before the first, the key is
// the service attained. No prediction is used.
#include <array>
#include <cmath>

#include "cluster/policies/factories.h"
#include "cluster/policies/preemptive_walk.h"
#include "cluster/service.h"

namespace forerun::cluster {
namespace {

constexpr size_t kSteps = 26;  // up to 64 GPU years
constexpr int kRenewal = 64;

class GittinsIndex {
 public:
  static constexpr bool kKeysDrift = false;

  GittinsIndex() {
    for (size_t step = 0; step < kSteps; ++step) {
      bound_[step] = static_cast<int64_t>(60e9 * std::pow(2.0, static_cast<double>(step)));
      key_[step] = bound_[step];
    }
  }

  [[nodiscard]] int64_t key(const ClusterView& view, JobIndex job) const {
    return key_[step_of(gpu_time(view.attained(job), view.job(job).gpus))];
  }

  Time renew(const ClusterView& view, Walked& run) const {
    if (run.change > view.now()) return run.change;
    const Time attained = view.attained(run.job);
    const size_t step = step_of(gpu_time(attained, run.gpus));
    run.key = key_[step];
    if (step + 1 >= kSteps) return kNever;
    const Time needed((bound_[step] - 1) / run.gpus + 1);
    return later(view.now(), std::max(needed - attained, Time(1)));
  }

  void finished(const ClusterView& view, JobIndex job) {
    const int64_t service = gpu_time(view.attained(job), view.job(job).gpus);
    ended_[step_of(service)] += 1;
    service_[step_of(service)] += static_cast<double>(service);
    if (++ends_ % kRenewal == 0) renew_table();
  }

 private:
  // Services below bound_[0] are step 0, below bound_[1] step 1, and so on.
  [[nodiscard]] size_t step_of(int64_t service) const {
    const auto place = std::upper_bound(bound_.begin(), bound_.end(), service);
    return std::min(static_cast<size_t>(place - bound_.begin()), kSteps - 1);
  }

  void renew_table() {
    for (size_t a = 0; a < kSteps; ++a) {
      const double done = a == 0 ? 0 : static_cast<double>(bound_[a - 1]);
      double beyond = 0;
      for (size_t b = a; b < kSteps; ++b) beyond += ended_[b];
      double best = INFINITY;
      double by_now = 0, spent = 0;
      for (size_t b = a; b < kSteps; ++b) {
        by_now += ended_[b];
        spent += service_[b] - ended_[b] * done;
        if (by_now == 0) continue;
        best = std::min(best, (spent + (beyond - by_now) * (static_cast<double>(bound_[b]) - done)) / by_now);
      }
      key_[a] = std::isinf(best) ? kNever.value / 2 + bound_[a] / 4 : static_cast<int64_t>(std::min(best, 4e18));
    }
  }

  std::array<int64_t, kSteps> bound_{};  // GPU nanoseconds
  std::array<int64_t, kSteps> key_{};
  std::array<double, kSteps> ended_{};    // jobs that ended in a step
  std::array<double, kSteps> service_{};  // their services, summed
  int64_t ends_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_gittins(OptionReader& /*options*/) {
  return std::make_unique<PreemptiveWalk<GittinsIndex>>(GittinsIndex());
}

}  // namespace forerun::cluster
