// PreemptiveWalk: at every event all jobs present, running or waiting, are walked in the order of a key, and whatever fits
// in what those before it left runs. Running jobs for which nothing is left are stopped.
//
// Only the first waiting job of each gang class can be the next to start, since room only shrinks on the way; so a walk
// passes over the running jobs and some class heads, never over the queue. It ends early once nothing that waits fits.
// Ties go by order of arrival. Started jobs take the free type they are
// predicted to be fastest on; running ones stay on theirs.
//
// An Order gives the key: int64_t key(view, job) of a waiting job, Time renew(view, entry), which brings a running
// job's key up to date and says when it next changes by itself, finished(view, job), and kKeysDrift: whether keys of
// running jobs change all the time.
#pragma once

#include <algorithm>
#include <map>

#include "cluster/waiting_queues.h"

namespace forerun::cluster {

// A running job in a walk.
struct Walked {
  int64_t key = 0;
  JobIndex job = kNoJob;
  TypeIndex type = 0;
  int32_t gpus = 0;
  Time change;  // the Order's own: when its key next changes
};

template <class Order>
class PreemptiveWalk final : public Policy {
 public:
  explicit PreemptiveWalk(Order order) : order_(std::move(order)) {}

  void arrived(const ClusterView& view, JobIndex job) override {
    waiting_[GangClass::of(view, job)].add({order_.key(view, job), job});
  }
  void finished(const ClusterView& view, JobIndex job) override {
    order_.finished(view, job);
    remove(job);
  }
  void stopped(const ClusterView& view, JobIndex job) override {
    remove(job);
    arrived(view, job);
  }

  void schedule(Scheduler& scheduler) override {
    if (Order::kKeysDrift || scheduler.now() >= next_change_) renew(scheduler);
    walk(scheduler);
    if (!starts_.empty()) carry_out(scheduler);
    if (next_change_ != kNever) scheduler.wake_at(std::max(next_change_, later(scheduler.now(), Time(1))));
  }

 private:
  using Class = typename std::map<GangClass, HeadQueue>::value_type;
  struct Start {
    JobIndex job = kNoJob;
    TypeIndex type = 0;
  };

  static bool before(const Walked& a, const Walked& b) { return a.key != b.key ? a.key < b.key : a.job < b.job; }

  void remove(JobIndex job) {
    const auto same = [job](const Walked& run) { return run.job == job; };
    running_.erase(std::find_if(running_.begin(), running_.end(), same));
  }

  void renew(const ClusterView& view) {
    bool sorted = true;
    next_change_ = kNever;
    for (size_t i = 0; i < running_.size(); ++i) {
      running_[i].change = order_.renew(view, running_[i]);
      next_change_ = std::min(next_change_, running_[i].change);
      sorted = sorted && (i == 0 || before(running_[i - 1], running_[i]));
    }
    if (!sorted) std::sort(running_.begin(), running_.end(), before);
  }

  // The class whose first job goes before those of all others that fit.
  Class* next_fitting() {
    Class* best = nullptr;
    const int32_t most = *std::max_element(free_.begin(), free_.end());
    for (Class& candidate : waiting_) {
      if (candidate.first.gpus > most) break;
      if (candidate.second.empty() || !candidate.first.fits(free_)) continue;
      if (best == nullptr || candidate.second.first() < best->second.first()) best = &candidate;
    }
    return best;
  }

  // Where the walk can begin: before the first waiting job that fits in what the running ones before it leave. All before
  // that stays as it is. Sets free_ to what is left there. With several types it begins at the front.
  size_t first_change(const ClusterView& view) {
    free_.assign(view.types(), 0);
    for (TypeIndex type = 0; type < view.types(); ++type) free_[type] = view.working(type);
    if (view.types() > 1) return 0;
    left_.resize(running_.size() + 1);
    left_[running_.size()] = view.free(0);
    for (size_t i = running_.size(); i-- > 0;) left_[i] = left_[i + 1] + running_[i].gpus;
    size_t first = running_.size();
    free_[0] = left_[first];
    for (const Class& candidate : waiting_) {
      if (candidate.second.empty()) continue;
      const Waiting& head = candidate.second.first();
      const Walked place{head.key, head.job};
      const auto at =
          static_cast<size_t>(std::lower_bound(running_.begin(), running_.end(), place, before) - running_.begin());
      if (at >= first || candidate.first.gpus > left_[at]) continue;
      first = at;
      free_[0] = left_[at];
    }
    return first;
  }

  // Fills starts_ and stops_.
  void walk(const ClusterView& view) {
    size_t i = first_change(view);
    Class* next = next_fitting();
    while (next != nullptr || (!starts_.empty() && i < running_.size())) {
      if (next != nullptr &&
          (i == running_.size() || next->second.first() < Waiting{running_[i].key, running_[i].job})) {
        take(view, *next);
        next = next_fitting();
        continue;
      }
      const Walked& run = running_[i++];
      if (free_[run.type] < run.gpus) {
        stops_.push_back(run.job);
        continue;
      }
      free_[run.type] -= run.gpus;
      if (next != nullptr && !next->first.fits(free_)) next = next_fitting();
    }
  }

  void take(const ClusterView& view, Class& from) {
    const JobIndex job = from.second.first().job;
    from.second.pop();
    std::optional<TypeIndex> best;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (!from.first.usable(type) || from.first.gpus > free_[type]) continue;
      if (!best || view.predicted(job, type) < view.predicted(job, *best)) best = type;
    }
    free_[*best] -= from.first.gpus;
    starts_.push_back({job, *best});
  }

  void carry_out(Scheduler& scheduler) {
    for (const JobIndex job : stops_) {
      scheduler.preempt(job);
      remove(job);
      arrived(scheduler, job);
    }
    for (const Start& start : starts_) {
      scheduler.start(start.job, start.type);
      Walked run{0, start.job, start.type, scheduler.job(start.job).gpus, Time(0)};
      run.change = order_.renew(scheduler, run);
      next_change_ = std::min(next_change_, run.change);
      running_.insert(std::upper_bound(running_.begin(), running_.end(), run, before), run);
    }
    starts_.clear();
    stops_.clear();
  }

  Order order_;
  std::map<GangClass, HeadQueue> waiting_;
  std::vector<Walked> running_;  // by key, then order of arrival
  std::vector<int32_t> free_;    // by type: what is left at this point of the walk
  std::vector<Start> starts_;
  std::vector<JobIndex> stops_;
  std::vector<int32_t> left_;  // by place in running_: GPUs left by those before it
  Time next_change_ = kNever;  // no running job's key changes by itself before
};

}  // namespace forerun::cluster
