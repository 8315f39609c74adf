// First in, first out with packing, after Gavel: whatever fits starts, and a single-GPU job that finds no free GPU shares
// one with a running single-GPU job, where that was measured and both together get more done than one alone.
//
// A pair is worth it if the speeds of both add up to at least `gain` (an option, 1.2); the best pair is taken, ties by
// order of arrival. A GPU is shared by two jobs at most. Without measured pairs this is fifo-skip.
#include <map>
#include <set>

#include "cluster/policies/factories.h"
#include "cluster/waiting_queues.h"

namespace forerun::cluster {
namespace {

class FifoPack final : public Policy {
 public:
  explicit FifoPack(double gain) : gain_(gain) {}

  void arrived(const ClusterView& view, JobIndex job) override { waiting_.insert({0, job, rank_of(view, job)}); }

  void schedule(Scheduler& scheduler) override {
    alone_.clear();
    for (const Running& run : scheduler.running()) {
      if (run.gpus == 1 && run.partner == kNoJob) alone_[{run.type, scheduler.job(run.job).kind}].insert(run.job);
    }
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const JobIndex job = next->job;
      const bool started = start(scheduler, job) || pack(scheduler, job);
      next = started ? waiting_.erase(next) : std::next(next);
    }
  }

 private:
  bool start(Scheduler& scheduler, JobIndex job) {
    const auto type = scheduler.fastest_free(job);
    if (!type) return false;
    scheduler.start(job, *type);
    if (scheduler.job(job).gpus == 1) alone_[{*type, scheduler.job(job).kind}].insert(job);
    return true;
  }

  bool pack(Scheduler& scheduler, JobIndex job) {
    if (scheduler.job(job).gpus != 1) return false;
    std::set<JobIndex>* best = nullptr;
    double most = gain_;
    for (auto& [place, jobs] : alone_) {
      if (jobs.empty() || !scheduler.usable(job, place.first)) continue;
      const auto speeds = scheduler.packed_speeds(job, *jobs.begin(), place.first);
      if (!speeds) continue;
      if (speeds->first + speeds->second >= most) {
        best = &jobs;
        most = speeds->first + speeds->second + 1e-9;  // a later one must be better
      }
    }
    if (best == nullptr) return false;
    const JobIndex partner = *best->begin();
    best->erase(best->begin());
    scheduler.share(job, partner);
    return true;
  }

  double gain_;
  std::set<Waiting> waiting_;                                          // by priority, then order of arrival
  std::map<std::pair<TypeIndex, int32_t>, std::set<JobIndex>> alone_;  // single-GPU jobs alone, by type and kind
};

}  // namespace

std::unique_ptr<Policy> make_fifo_pack(OptionReader& options) {
  return std::make_unique<FifoPack>(options.number("gain", 1.2, 0, 2));
}

}  // namespace forerun::cluster
