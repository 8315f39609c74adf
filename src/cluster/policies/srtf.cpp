// Shortest remaining time first, preemptive: the waiting job with the least predicted time left starts where its gang is
// free, or takes the GPUs of running jobs with more left than it has, longest first, if that gives it room. Otherwise it
// holds up all behind it. A job that was stopped keeps its progress; one that has just started is not stopped at once,
// however long a restart it pays.
//
// Time takes from what remains of running jobs only, so the order changes with arrivals and ends alone: each costs
// O(log n), and making room as many steps as jobs are stopped. `srtf-skip` (preemptive_walk.h) lets whatever fits start.
#include <set>

#include "cluster/policies/factories.h"
#include "cluster/waiting_queues.h"

namespace forerun::cluster {
namespace {

class ShortestRemaining final : public Policy {
 public:
  void begin(const ClusterView& view) override { running_.resize(view.types()); }

  void arrived(const ClusterView& view, JobIndex job) override { wait(view, job); }

  void finished(const ClusterView& /*view*/, JobIndex job) override { forget(job); }

  void stopped(const ClusterView& view, JobIndex job) override {
    forget(job);
    wait(view, job);
  }

  void schedule(Scheduler& scheduler) override {
    while (!queue_.empty()) {
      const Waiting first = queue_.first();
      auto type = scheduler.fastest_free(first.job);
      if (!type) type = make_room(scheduler, first);
      if (!type) return;
      queue_.pop();
      for (const JobIndex job : stopped_) wait(scheduler, job);
      stopped_.clear();
      scheduler.start(first.job, *type);
      Placed& placed = placed_[first.job];
      placed = {scheduler.running(first.job).predicted_end.value, *type};
      running_[*type].insert({placed.end, first.job});
    }
  }

 private:
  struct Placed {
    int64_t end = 0;  // predicted
    TypeIndex type = 0;
  };

  void wait(const ClusterView& view, JobIndex job) {
    if (placed_.size() <= job) placed_.resize(size_t{job} + 1);
    Time least = kNever;
    for (TypeIndex type = 0; type < view.types(); ++type) least = std::min(least, view.predicted_remaining(job, type));
    queue_.add({least.value, job});
  }

  void forget(JobIndex job) { running_[placed_[job].type].erase({placed_[job].end, job}); }

  // Stops jobs with more left than the waiting one, longest first, on the first type where that gives it room. They are
  // left in stopped_.
  std::optional<TypeIndex> make_room(Scheduler& scheduler, const Waiting& waiting) {
    for (TypeIndex type = 0; type < scheduler.types(); ++type) {
      if (!scheduler.usable(waiting.job, type)) continue;
      const int64_t latest = later(scheduler.now(), scheduler.predicted_remaining(waiting.job, type)).value;
      int32_t room = scheduler.free(type);
      const int32_t needed = scheduler.job(waiting.job).gpus;
      stopped_.clear();
      for (auto run = running_[type].rbegin(); run != running_[type].rend() && room < needed; ++run) {
        if (run->key <= latest || scheduler.running(run->job).since == scheduler.now()) break;
        room += scheduler.running(run->job).gpus;
        stopped_.push_back(run->job);
      }
      if (room < needed) continue;
      for (const JobIndex job : stopped_) {
        forget(job);
        scheduler.preempt(job);
      }
      return type;
    }
    stopped_.clear();
    return std::nullopt;
  }

  HeadQueue queue_;
  std::vector<std::set<Waiting>> running_;  // by type: by predicted end, which orders by what remains
  std::vector<Placed> placed_;              // by job: where it stands in running_
  std::vector<JobIndex> stopped_;
};

}  // namespace

std::unique_ptr<Policy> make_srtf(OptionReader& /*options*/) { return std::make_unique<ShortestRemaining>(); }

}  // namespace forerun::cluster
