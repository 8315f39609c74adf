// Conservative backfill: every job gets a reservation when it arrives, at the earliest time its gang is predicted to be
// free for as long as it is predicted to run, and no later job of the same priority or less may move it back.
//
// While predictions hold, reservations stand. When a job ends before or runs past its expected end (expected_end.h), GPUs
// fail or a job comes that goes before others that wait, all waiting jobs are planned anew by priority, then in order of
// arrival: O(queue x reservations). With several GPU types a job is reserved where it is predicted to end soonest.
#include <map>
#include <set>

#include "cluster/expected_end.h"
#include "cluster/free_profile.h"
#include "cluster/policies/factories.h"
#include "cluster/waiting_queues.h"

namespace forerun::cluster {
namespace {

class ConservativeBackfill final : public Policy {
 public:
  void arrived(const ClusterView& view, JobIndex job) override {
    const auto place = waiting_.insert({0, job, rank_of(view, job)}).first;
    stale_ = stale_ || std::next(place) != waiting_.end();  // it goes before others
    unplanned_.push_back(job);
  }

  void finished(const ClusterView& view, JobIndex job) override {
    const auto place = ends_.find(job);
    stale_ = stale_ || place == ends_.end() || place->second != view.now();
    if (place != ends_.end()) ends_.erase(place);
  }

  void stopped(const ClusterView& view, JobIndex job) override {
    ends_.erase(job);
    stale_ = true;
    arrived(view, job);
  }

  void schedule(Scheduler& scheduler) override {
    if (waiting_.empty()) return;
    if (working_ != gpus_working(scheduler) || overrun(scheduler.now())) stale_ = true;
    if (stale_ || profiles_.empty()) {
      plan_all(scheduler);
    } else {
      for (FreeProfile& profile : profiles_) profile.advance(scheduler.now());
      for (const JobIndex job : unplanned_) plan(scheduler, job);
    }
    unplanned_.clear();
    if (late(scheduler)) plan_all(scheduler);
    while (!planned_.empty() && Time(planned_.begin()->start.key) <= scheduler.now()) {
      const Planned first = *planned_.begin();
      planned_.erase(planned_.begin());
      waiting_.erase({0, first.start.job, rank_of(scheduler, first.start.job)});
      scheduler.start(first.start.job, first.type);
      ends_[first.start.job] = scheduler.running(first.start.job).predicted_end;
    }
    if (!planned_.empty() && planned_.begin()->start.key != kNever.value) {
      scheduler.wake_at(Time(planned_.begin()->start.key));
    }
  }

 private:
  struct Planned {
    Waiting start;  // by time of starting, then order of arrival
    TypeIndex type = 0;
    friend bool operator<(const Planned& a, const Planned& b) { return a.start < b.start; }
  };

  static std::vector<int32_t> gpus_working(const ClusterView& view) {
    std::vector<int32_t> working;
    for (TypeIndex type = 0; type < view.types(); ++type) working.push_back(view.working(type));
    return working;
  }

  // Whether a run has passed its expected end.
  [[nodiscard]] bool overrun(Time now) const {
    return std::any_of(ends_.begin(), ends_.end(), [now](const auto& run) { return run.second <= now; });
  }

  // Whether a job that is due to start does not fit, because another takes longer than was planned for it: by a restart,
  // or where it is spread out.
  [[nodiscard]] bool late(const ClusterView& view) const {
    std::vector<int32_t> free = view.all_free();
    for (const Planned& planned : planned_) {
      if (Time(planned.start.key) > view.now()) return false;
      free[planned.type] -= view.job(planned.start.job).gpus;
      if (free[planned.type] < 0) return true;
    }
    return false;
  }

  void plan_all(const ClusterView& view) {
    stale_ = false;
    working_ = gpus_working(view);
    profiles_.clear();
    planned_.clear();
    for (TypeIndex type = 0; type < view.types(); ++type) profiles_.emplace_back(view.now(), view.free(type));
    for (const Running& run : view.running()) {
      ends_[run.job] = expected_end(run, view.now());
      profiles_[run.type].release(ends_[run.job], run.gpus);
    }
    for (const Waiting& waiting : waiting_) plan(view, waiting.job);
  }

  void plan(const ClusterView& view, JobIndex job) {
    TypeIndex best = kNoType;
    Time start = kNever;
    Time soonest = kNever;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (!view.usable(job, type)) continue;
      const Time remaining = std::max(view.predicted_remaining(job, type), Time(1));
      const Time at = profiles_[type].earliest(view.job(job).gpus, remaining);
      if (at == kNever || later(at, remaining) >= soonest) continue;
      best = type;
      start = at;
      soonest = later(at, remaining);
    }
    if (best == kNoType) {  // too many GPUs have failed
      planned_.insert({{kNever.value, job}, 0});
      return;
    }
    profiles_[best].reserve(start, std::max(view.predicted_remaining(job, best), Time(1)), view.job(job).gpus);
    planned_.insert({{start.value, job}, best});
  }

  std::set<Waiting> waiting_;  // by priority, then order of arrival
  std::vector<JobIndex> unplanned_;
  std::vector<FreeProfile> profiles_;  // by type
  std::set<Planned> planned_;
  std::map<JobIndex, Time> ends_;  // running jobs' expected ends
  std::vector<int32_t> working_;   // GPUs by type when last planned
  bool stale_ = false;
};

}  // namespace

std::unique_ptr<Policy> make_conservative(OptionReader& /*options*/) {
  return std::make_unique<ConservativeBackfill>();
}

}  // namespace forerun::cluster
