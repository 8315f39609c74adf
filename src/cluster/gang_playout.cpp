#include "cluster/gang_playout.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
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

using BusyEnds = std::priority_queue<BusyEnd, std::vector<BusyEnd>, std::greater<>>;

BusyEnds busy_ends(const GangProblem& problem) {
  std::vector<BusyEnd> ends;
  for (const BusyGpus& busy : problem.busy) ends.push_back({busy.until, busy.type, busy.gpus});
  return BusyEnds(std::greater<>(), std::move(ends));
}

// Frees what ends next, and says when that is.
int64_t free_next(BusyEnds& ends, std::vector<int32_t>& free) {
  const int64_t now = ends.top().until;
  for (; !ends.empty() && ends.top().until == now; ends.pop()) {
    free[static_cast<size_t>(ends.top().type)] += ends.top().gpus;
  }
  return now;
}

// Starts a job that fits.
void start_gang(const GangProblem& problem, const GangOrder& order, size_t index, int64_t now,
                std::vector<int32_t>& free, BusyEnds& ends, GangPlayout& played) {
  const GangJob& job = problem.jobs[index];
  const int type = type_for(job, order.types.empty() ? -1 : order.types[index], free);
  free[static_cast<size_t>(type)] -= job.gpus;
  const int64_t end = now + job.durations[static_cast<size_t>(type)];
  ends.push({end, type, job.gpus});
  played.places[index] = {type, -1, 0, now};
  played.cost.completion += static_cast<double>(end);
  if (job.deadline != kNoDeadline && end > job.deadline) {
    played.cost.tardiness += static_cast<double>(end) - static_cast<double>(job.deadline);
  }
}

// Jobs of an order that have not started; finds the first of them that fits, in O(log n) for each type.
//
// For every type a binary tree of the least gang of those that may start there.
class WaitingGangs {
 public:
  WaitingGangs(const GangProblem& problem, const GangOrder& order)
      : jobs_(order.jobs.size()), leaves_(std::bit_ceil(std::max<size_t>(jobs_, 1))) {
    for (size_t type = 0; type < problem.free.size(); ++type) {
      std::vector<int32_t>& least = least_.emplace_back(2 * leaves_, kNoGang);
      for (size_t place = 0; place < jobs_; ++place) {
        const auto index = static_cast<size_t>(order.jobs[place]);
        const int fixed = order.types.empty() ? -1 : order.types[index];
        const bool may =
            (fixed < 0 || static_cast<size_t>(fixed) == type) && problem.jobs[index].durations[type] != kCannotRun;
        if (may) least[leaves_ + place] = problem.jobs[index].gpus;
      }
      for (size_t node = leaves_ - 1; node > 0; --node) least[node] = std::min(least[2 * node], least[2 * node + 1]);
    }
  }

  // The place in the order of the first, from `from` on, that some type has room for; jobs() where none is.
  [[nodiscard]] size_t first_fitting(size_t from, const std::vector<int32_t>& free) const {
    size_t first = jobs_;
    for (size_t type = 0; type < least_.size(); ++type) {
      first = std::min(first, first_within(least_[type], from, free[type]));
    }
    return first;
  }

  void remove(size_t place) {
    for (std::vector<int32_t>& least : least_) {
      size_t node = leaves_ + place;
      least[node] = kNoGang;
      for (node /= 2; node > 0; node /= 2) least[node] = std::min(least[2 * node], least[2 * node + 1]);
    }
  }

  [[nodiscard]] size_t jobs() const { return jobs_; }

 private:
  static constexpr int32_t kNoGang = std::numeric_limits<int32_t>::max();

  [[nodiscard]] size_t first_within(const std::vector<int32_t>& least, size_t from, int32_t most) const {
    if (from >= jobs_) return jobs_;
    size_t node = leaves_ + from;
    while (least[node] > most) {
      while (node % 2 == 1) node /= 2;  // what lies to the right of a right child lies to the right of its parent
      if (node == 0) return jobs_;
      ++node;
    }
    while (node < leaves_) node = least[2 * node] <= most ? 2 * node : 2 * node + 1;
    return node - leaves_;
  }

  size_t jobs_;
  size_t leaves_;
  std::vector<std::vector<int32_t>> least_;  // by type; node 1 is the root
};

}  // namespace

GangPlayout play_out(const GangProblem& problem, const GangOrder& order) {
  GangPlayout played;
  played.places.resize(problem.jobs.size());
  std::vector<int32_t> free = problem.free;
  BusyEnds ends = busy_ends(problem);
  WaitingGangs waiting(problem, order);
  size_t started = 0;
  for (int64_t now = 0;;) {
    // Room only shrinks within an instant: what did not fit before a start does not fit after it.
    for (size_t place = order.skip ? 0 : started; place < waiting.jobs();) {
      const size_t next = waiting.first_fitting(place, free);
      if (next == waiting.jobs() || (!order.skip && next != place)) break;
      start_gang(problem, order, static_cast<size_t>(order.jobs[next]), now, free, ends, played);
      waiting.remove(next);
      ++started;
      place = next + 1;
    }
    if (started == waiting.jobs() || ends.empty()) break;
    now = free_next(ends, free);
  }
  return played;
}

GangPlayout reference_play_out(const GangProblem& problem, const GangOrder& order) {
  GangPlayout played;
  played.places.resize(problem.jobs.size());
  std::vector<int32_t> free = problem.free;
  BusyEnds ends = busy_ends(problem);
  std::vector<int> waiting = order.jobs;
  for (int64_t now = 0; !waiting.empty();) {
    std::vector<int> left;
    for (const int index : waiting) {
      const GangJob& job = problem.jobs[static_cast<size_t>(index)];
      const int fixed = order.types.empty() ? -1 : order.types[static_cast<size_t>(index)];
      const bool held_up = !order.skip && !left.empty();
      if (held_up || type_for(job, fixed, free) < 0) {
        left.push_back(index);
      } else {
        start_gang(problem, order, static_cast<size_t>(index), now, free, ends, played);
      }
    }
    waiting = left;
    if (waiting.empty() || ends.empty()) break;
    now = free_next(ends, free);
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
