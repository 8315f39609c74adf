#include "cluster/policies/rounds.h"

#include <algorithm>
#include <set>

namespace forerun::cluster {
namespace {

int32_t gpus_of(const ClusterView& view, const RoundChoice& choice) {
  return choice.gpus > 0 ? choice.gpus : view.job(choice.job).gpus;
}

JobIndex partner_in(const RoundChoice& choice, JobIndex job) { return job == choice.job ? choice.partner : choice.job; }

}  // namespace

std::vector<TypeIndex> types_by_speed(const ClusterView& view, JobIndex job) {
  std::vector<TypeIndex> types;
  for (TypeIndex type = 0; type < view.types(); ++type) {
    if (view.usable(job, type)) types.push_back(type);
  }
  std::stable_sort(types.begin(), types.end(),
                   [&](TypeIndex a, TypeIndex b) { return view.predicted(job, a) < view.predicted(job, b); });
  return types;
}

void RoundPolicy::arrived(const ClusterView& /*view*/, JobIndex job) {
  active_.push_back(job);
  changed_ = true;
}

void RoundPolicy::finished(const ClusterView& /*view*/, JobIndex job) {
  std::erase(active_, job);
  changed_ = true;
}

void RoundPolicy::stopped(const ClusterView& /*view*/, JobIndex /*job*/) { changed_ = true; }

// Who runs where in the new round.
std::vector<RoundChoice> RoundPolicy::pack(const ClusterView& view) {
  std::vector<int32_t> room(view.types());
  for (TypeIndex type = 0; type < view.types(); ++type) room[type] = view.working(type);
  std::vector<RoundChoice> taken;
  std::set<JobIndex> placed;
  const auto take = [&](const RoundChoice& choice) {
    const int32_t gpus = gpus_of(view, choice);
    if (gpus > room[choice.type] || placed.contains(choice.job)) return;
    if (choice.partner != kNoJob && !placed.insert(choice.partner).second) return;
    room[choice.type] -= gpus;
    placed.insert(choice.job);
    taken.push_back(choice);
  };
  for (const RoundChoice& choice : choices(view, active_)) take(choice);
  changed_ = false;
  // What room is left goes to those that are left, in order of arrival, rather than to nobody.
  for (const JobIndex job : active_) {
    if (*std::max_element(room.begin(), room.end()) == 0) break;
    if (placed.contains(job)) continue;
    for (const TypeIndex type : types_by_speed(view, job)) take({job, type});
  }
  return taken;
}

// Running jobs that have to be stopped for the new round: those without a place, with another one, or beside a job that
// is not their partner any more.
std::vector<JobIndex> RoundPolicy::leaving(const ClusterView& view, const Places& places) {
  const auto keeps_place = [&](const Running& run) {
    const auto place = places.find(run.job);
    return place != places.end() && place->second->type == run.type && gpus_of(view, *place->second) == run.gpus;
  };
  std::vector<JobIndex> list;
  for (const Running& run : view.running()) {
    if (!keeps_place(run)) {
      list.push_back(run.job);
      continue;
    }
    const JobIndex next = partner_in(*places.at(run.job), run.job);
    const bool parts = run.partner != kNoJob && run.partner != next && keeps_place(view.running(run.partner));
    // Of two that run on GPUs of their own and are to share one, and of two that part, the later goes.
    const bool joins =
        next != kNoJob && next != run.partner && view.is_running(next) && keeps_place(view.running(next));
    if ((parts && run.job > run.partner) || (joins && run.job > next)) list.push_back(run.job);
  }
  return list;
}

void RoundPolicy::start(Scheduler& scheduler, const RoundChoice& choice) {
  const bool first = scheduler.is_running(choice.job);
  if (choice.partner == kNoJob) {
    if (!first) scheduler.start(choice.job, choice.type, choice.gpus);
    return;
  }
  const bool second = scheduler.is_running(choice.partner);
  if (first && second) return;
  if (!first && !second) scheduler.start(choice.job, choice.type);
  scheduler.share(first || !second ? choice.partner : choice.job, first || !second ? choice.job : choice.partner);
}

void RoundPolicy::turn(Scheduler& scheduler) {
  const std::vector<RoundChoice> taken = pack(scheduler);
  Places places;
  for (const RoundChoice& choice : taken) {
    places[choice.job] = &choice;
    if (choice.partner != kNoJob) places[choice.partner] = &choice;
  }
  for (const JobIndex job : leaving(scheduler, places)) scheduler.preempt(job);
  for (const RoundChoice& choice : taken) start(scheduler, choice);
  granted(scheduler, taken);
}

void RoundPolicy::fill(Scheduler& scheduler) {
  const auto& free = scheduler.all_free();
  if (*std::max_element(free.begin(), free.end()) == 0) return;
  std::vector<std::pair<double, JobIndex>> waiting;
  for (const JobIndex job : active_) {
    if (!scheduler.is_running(job)) waiting.emplace_back(-claim(job), job);
  }
  std::sort(waiting.begin(), waiting.end());
  for (const auto& [claim, job] : waiting) {
    const auto type = scheduler.fastest_free(job);
    if (!type || !scheduler.usable(job, *type)) continue;
    scheduler.start(job, *type);
    filled(job, *type, seconds(next_ - scheduler.now()) / seconds(round_));
  }
}

// Leases that have run out go to others only: a job that nobody waits behind keeps its GPUs.
void RoundPolicy::end_leases(Scheduler& scheduler) {
  std::vector<JobIndex> over;
  for (const Running& run : scheduler.running()) {
    if (lease_end(run.job) <= scheduler.now()) over.push_back(run.job);
  }
  if (over.empty() || scheduler.running().size() == active_.size()) return;
  std::sort(over.begin(), over.end());
  for (const JobIndex job : over) scheduler.preempt(job);
  for (const JobIndex job : active_) {
    if (scheduler.is_running(job) || std::binary_search(over.begin(), over.end(), job)) continue;
    if (const auto type = scheduler.fastest_free(job)) scheduler.start(job, *type);
  }
}

void RoundPolicy::schedule(Scheduler& scheduler) {
  if (active_.empty()) return;
  if (scheduler.now() >= next_) {
    turn(scheduler);
    next_ = scheduler.now() + round_;
  } else if (scheduler.running().size() < active_.size()) {
    end_leases(scheduler);
    fill(scheduler);
  }
  // While nobody waits and nobody comes, rounds change nothing but the types that jobs run on.
  if (scheduler.running().size() == active_.size() && scheduler.types() == 1) return;
  Time wake = next_;
  for (const Running& run : scheduler.running()) {
    if (const Time end = lease_end(run.job); end > scheduler.now()) wake = std::min(wake, end);
  }
  scheduler.wake_at(wake);
}

}  // namespace forerun::cluster
