#include "cluster/gang_playout.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace forerun::cluster {
namespace {

struct BusyEnd {
  int64_t until;
  int32_t type, gpus;
  friend auto operator<=>(const BusyEnd&, const BusyEnd&) = default;
};

// The type a job starts on now; -1: none.
int type_for(const GangJob& job, int fixed, const std::vector<int32_t>& free) {
  const auto fits = [&](size_t type) { return job.durations[type] != kCannotRun && free[type] >= job.gpus; };
  if (fixed >= 0) return fits(static_cast<size_t>(fixed)) ? fixed : -1;
  int best = -1;
  for (size_t type = 0; type < free.size(); ++type) {
    if (!fits(type)) continue;
    if (best < 0 || job.durations[type] < job.durations[static_cast<size_t>(best)]) best = static_cast<int>(type);
  }
  return best;
}

}  // namespace

GangPlayout play_out(const GangProblem& problem, const GangOrder& order) {
  GangPlayout played;
  played.places.resize(problem.jobs.size());
  std::vector<int32_t> free = problem.free;
  std::priority_queue<BusyEnd, std::vector<BusyEnd>, std::greater<>> ends;
  for (const BusyGpus& busy : problem.busy) ends.push({busy.until, busy.type, busy.gpus});
  std::vector<int> waiting = order.jobs;
  for (int64_t now = 0; !waiting.empty();) {
    size_t kept = 0;
    bool blocked = false;
    for (const int index : waiting) {
      const GangJob& job = problem.jobs[static_cast<size_t>(index)];
      const int fixed = order.types.empty() ? -1 : order.types[static_cast<size_t>(index)];
      const int type = blocked ? -1 : type_for(job, fixed, free);
      if (type < 0) {
        blocked = blocked || !order.skip;
        waiting[kept++] = index;
        continue;
      }
      free[static_cast<size_t>(type)] -= job.gpus;
      const int64_t end = now + job.durations[static_cast<size_t>(type)];
      ends.push({end, type, job.gpus});
      played.places[static_cast<size_t>(index)] = {type, -1, 0, now};
      played.cost.completion += static_cast<double>(end);
      if (job.deadline != kNoDeadline && end > job.deadline) {
        played.cost.tardiness += static_cast<double>(end) - static_cast<double>(job.deadline);
      }
    }
    waiting.resize(kept);
    if (waiting.empty() || ends.empty()) break;
    now = ends.top().until;
    for (; !ends.empty() && ends.top().until == now; ends.pop()) {
      free[static_cast<size_t>(ends.top().type)] += ends.top().gpus;
    }
  }
  return played;
}

GangPlayout best_playout(const GangProblem& problem, const std::vector<GangOrder>& orders, int most_tries) {
  GangPlayout best;
  GangOrder order;
  for (size_t i = 0; i < orders.size(); ++i) {
    GangPlayout played = play_out(problem, orders[i]);
    if (i > 0 && !(played.cost < best.cost)) continue;
    best = std::move(played);
    order = orders[i];
  }
  const auto late = [&](int job) {
    const GangJob& one = problem.jobs[static_cast<size_t>(job)];
    const QueuePlace& place = best.places[static_cast<size_t>(job)];
    return one.deadline != kNoDeadline && place.start + one.durations[static_cast<size_t>(place.kind)] > one.deadline;
  };
  int tries = 0;
  for (bool better = true; better && best.cost.tardiness > 0;) {
    better = false;
    for (size_t from = 1; from < order.jobs.size() && tries < most_tries; ++from) {
      if (!late(order.jobs[from])) continue;
      for (size_t to = 0; to < from && tries < most_tries; to = to * 2 + 1) {  // 0, 1, 3, 7, ...
        GangOrder moved = order;
        const auto first = moved.jobs.begin();
        std::rotate(first + static_cast<std::ptrdiff_t>(to), first + static_cast<std::ptrdiff_t>(from),
                    first + static_cast<std::ptrdiff_t>(from) + 1);
        ++tries;
        GangPlayout played = play_out(problem, moved);
        if (!(played.cost < best.cost)) continue;
        best = std::move(played);
        order = std::move(moved);
        better = true;
        break;
      }
    }
  }
  return best;
}

}  // namespace forerun::cluster
