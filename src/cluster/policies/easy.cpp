// EASY backfill: by priority, then in order of arrival; when the first does not fit, it gets a reservation at the earliest
// time its gang is predicted to be free, and later jobs start now if they do not delay it: they are predicted to end by
// then, or take GPUs that it leaves over.
//
// Jobs of one gang size, usable types and priority stand in one tree, so that a pass costs O(log n) for each that fits,
// however long the queue. With several GPU types the reservation is on the type where the first in line is predicted to
// end soonest; the other types are open to all. A run that has outlasted its prediction is given more time
// (expected_end.h), and the reservation moves with it.
#include <map>
#include <set>

#include "cluster/expected_end.h"
#include "cluster/first_fit_tree.h"
#include "cluster/policies/factories.h"
#include "cluster/waiting_queues.h"

namespace forerun::cluster {
namespace {

class EasyBackfill final : public Policy {
 public:
  void begin(const ClusterView& view) override { ends_.resize(view.types()); }

  void arrived(const ClusterView& view, JobIndex job) override {
    if (placed_.size() <= job) placed_.resize(size_t{job} + 1);
    std::vector<FirstFitTree>& trees = classes_[class_of(view, job)];
    trees.resize(view.types());
    for (TypeIndex type = 0; type < view.types(); ++type) trees[type].add(job, view.predicted(job, type));
    line_.add({0, job, rank_of(view, job)});
    ++waiting_;
  }

  void finished(const ClusterView& /*view*/, JobIndex job) override {
    ends_[placed_[job].type].erase({placed_[job].end, job});
  }

  void stopped(const ClusterView& view, JobIndex job) override {
    finished(view, job);
    placed_[job].started = false;
    arrived(view, job);
  }

  void schedule(Scheduler& scheduler) override {
    while (const auto head = first_in_line()) {
      const auto type = scheduler.fastest_free(*head);
      if (!type) break;
      start(scheduler, *head, *type);
    }
    const auto head = first_in_line();
    if (!head || waiting_ < 2) return;
    renew_ends(scheduler);
    Reservation reservation = reserve(scheduler, *head);
    if (reservation.at > scheduler.now()) scheduler.wake_at(reservation.at);  // it may have to move
    while (const auto job = first_that_does_not_delay(scheduler, reservation)) {
      const TypeIndex type = *best_type(scheduler, *job, reservation);
      const bool beyond =
          type == reservation.type && scheduler.predicted(*job, type) > reservation.at - scheduler.now();
      if (beyond) reservation.left_over -= scheduler.job(*job).gpus;
      start(scheduler, *job, type);
    }
  }

 private:
  using Class = std::pair<GangClass, int32_t>;  // and rank
  struct Placed {
    int64_t end = 0;  // expected
    TypeIndex type = 0;
    bool started = false;
  };
  struct Reservation {
    TypeIndex type = 0;
    Time at;
    int32_t left_over = 0;  // GPUs free at that time that the first in line does not need
  };

  // The first waiting job; those that were backfilled have left the line out of turn.
  std::optional<JobIndex> first_in_line() {
    while (!line_.empty() && placed_[line_.first().job].started) line_.pop();
    return line_.empty() ? std::nullopt : std::optional(line_.first().job);
  }

  static Class class_of(const ClusterView& view, JobIndex job) {
    return {GangClass::of(view, job), rank_of(view, job)};
  }

  // Gives runs that have outlasted what was expected of them more time.
  void renew_ends(const ClusterView& view) {
    for (std::set<Waiting>& ends : ends_) {
      while (!ends.empty() && ends.begin()->key <= view.now().value) {
        const JobIndex job = ends.begin()->job;
        ends.erase(ends.begin());
        placed_[job].end = expected_end(view.running(job), view.now()).value;
        ends.insert({placed_[job].end, job});
      }
    }
  }

  void start(Scheduler& scheduler, JobIndex job, TypeIndex type) {
    for (FirstFitTree& tree : classes_[class_of(scheduler, job)]) tree.remove(job);
    scheduler.start(job, type);
    placed_[job] = {scheduler.running(job).predicted_end.value, type, true};
    ends_[type].insert({placed_[job].end, job});
    --waiting_;
  }

  Reservation reserve(const ClusterView& view, JobIndex head) const {
    Reservation best{0, kNever, 0};
    Time soonest = kNever;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (!view.usable(head, type)) continue;
      int32_t free = view.free(type);
      Time at = view.now();  // every end lies ahead
      for (auto end = ends_[type].begin(); end != ends_[type].end() && free < view.job(head).gpus; ++end) {
        free += view.running(end->job).gpus;
        at = std::max(at, Time(end->key));
      }
      if (free < view.job(head).gpus) continue;  // too many have failed
      const Time end = later(at, view.predicted(head, type));
      if (end < soonest) {
        soonest = end;
        best = {type, at, free - view.job(head).gpus};
      }
    }
    return best;
  }

  // How long a job of that gang may run on a type without delaying the first in line; nothing: not at all.
  static std::optional<Time> limit(const ClusterView& view, const GangClass& gang, TypeIndex type,
                                   const Reservation& reservation) {
    if (gang.gpus > view.free(type) || !gang.usable(type)) return std::nullopt;
    if (type != reservation.type || reservation.at == kNever || gang.gpus <= reservation.left_over) return kNever;
    return reservation.at - view.now();
  }

  std::optional<JobIndex> first_that_does_not_delay(const ClusterView& view, const Reservation& reservation) const {
    std::optional<Waiting> first;
    const int32_t most = *std::max_element(view.all_free().begin(), view.all_free().end());
    for (const auto& [key, trees] : classes_) {
      const auto& [gang, rank] = key;
      if (gang.gpus > most) break;
      for (TypeIndex type = 0; type < view.types(); ++type) {
        const auto allowed = limit(view, gang, type, reservation);
        const auto job = allowed ? trees[type].first_within(*allowed) : std::nullopt;
        if (job && (!first || Waiting{0, *job, rank} < *first)) first = {0, *job, rank};
      }
    }
    return first ? std::optional(first->job) : std::nullopt;
  }

  static std::optional<TypeIndex> best_type(const ClusterView& view, JobIndex job, const Reservation& reservation) {
    const GangClass gang = GangClass::of(view, job);
    std::optional<TypeIndex> best;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      const auto allowed = limit(view, gang, type, reservation);
      if (!allowed || view.predicted(job, type) > *allowed) continue;
      if (!best || view.predicted(job, type) < view.predicted(job, *best)) best = type;
    }
    return best;
  }

  std::map<Class, std::vector<FirstFitTree>> classes_;  // waiting jobs by predicted duration, one tree a type
  HeadQueue line_;                                      // by priority, then order of arrival
  std::vector<std::set<Waiting>> ends_;                 // by type: running jobs by expected end
  std::vector<Placed> placed_;                          // by job
  int64_t waiting_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_easy(OptionReader& /*options*/) { return std::make_unique<EasyBackfill>(); }

}  // namespace forerun::cluster
