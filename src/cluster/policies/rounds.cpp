#include "cluster/policies/rounds.h"

#include <algorithm>

namespace forerun::cluster {

void RoundPolicy::arrived(const ClusterView& /*view*/, JobIndex job) {
  active_.push_back(job);
  changed_ = true;
}

void RoundPolicy::finished(const ClusterView& /*view*/, JobIndex job) {
  std::erase(active_, job);
  changed_ = true;
}

void RoundPolicy::stopped(const ClusterView& /*view*/, JobIndex /*job*/) { changed_ = true; }

// Who runs where: `anew`, or beside those that run.
std::vector<RoundChoice> RoundPolicy::pack(const ClusterView& view, bool anew) {
  std::vector<int32_t> room(view.types());
  for (TypeIndex type = 0; type < view.types(); ++type) room[type] = anew ? view.working(type) : view.free(type);
  std::vector<RoundChoice> taken;
  std::vector<JobIndex> placed;  // sorted
  const auto take = [&](RoundChoice choice) {
    if (!anew && view.is_running(choice.job)) return;
    const int32_t gpus = view.job(choice.job).gpus;
    const auto place = std::lower_bound(placed.begin(), placed.end(), choice.job);
    if (gpus > room[choice.type] || (place != placed.end() && *place == choice.job)) return;
    room[choice.type] -= gpus;
    placed.insert(place, choice.job);
    taken.push_back(choice);
  };
  for (const RoundChoice& choice : choices(view, active_)) take(choice);
  changed_ = false;
  // What room is left goes to those that are left, in order of arrival, rather than to nobody.
  for (const JobIndex job : active_) {
    std::vector<TypeIndex> types;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (view.usable(job, type)) types.push_back(type);
    }
    std::stable_sort(types.begin(), types.end(),
                     [&](TypeIndex a, TypeIndex b) { return view.predicted(job, a) < view.predicted(job, b); });
    for (const TypeIndex type : types) take({job, type});
  }
  return taken;
}

void RoundPolicy::turn(Scheduler& scheduler) {
  const std::vector<RoundChoice> taken = pack(scheduler, true);
  std::vector<JobIndex> leaving;
  for (const Running& run : scheduler.running()) {
    const auto stays = std::find_if(taken.begin(), taken.end(), [&](const RoundChoice& choice) {
      return choice.job == run.job && choice.type == run.type;
    });
    if (stays == taken.end()) leaving.push_back(run.job);
  }
  for (const JobIndex job : leaving) scheduler.preempt(job);
  for (const RoundChoice& choice : taken) {
    if (!scheduler.is_running(choice.job)) scheduler.start(choice.job, choice.type);
  }
  granted(scheduler, taken);
}

void RoundPolicy::fill(Scheduler& scheduler) {
  for (const RoundChoice& choice : pack(scheduler, false)) {
    if (!scheduler.is_running(choice.job) && scheduler.fits(choice.job, choice.type)) {
      scheduler.start(choice.job, choice.type);
    }
  }
}

void RoundPolicy::schedule(Scheduler& scheduler) {
  if (active_.empty()) return;
  if (scheduler.now() >= next_) {
    turn(scheduler);
    next_ = scheduler.now() + round_;
  } else if (scheduler.running().size() < active_.size()) {
    fill(scheduler);
  }
  // While nobody waits and nobody comes, rounds change nothing but the types that jobs run on.
  if (scheduler.running().size() < active_.size() || scheduler.types() > 1) scheduler.wake_at(next_);
}

}  // namespace forerun::cluster
