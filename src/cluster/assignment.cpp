#include "cluster/assignment.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "base/check.h"

namespace forerun::cluster {
namespace {

// A sum of completion times in the upper half and the running time, which decides between equal sums, in the lower.
__extension__ typedef __int128 PlaceCost;
constexpr PlaceCost kUnreached = static_cast<PlaceCost>(1) << 124;

constexpr int kHalf = 62;

PlaceCost place_cost(int from_end, int64_t duration) {
  return ((static_cast<PlaceCost>(from_end) * duration) << kHalf) + static_cast<PlaceCost>(duration);
}
PlaceCost waiting_cost(int64_t free_at) { return static_cast<PlaceCost>(free_at) << kHalf; }

// Places of one kind that are equally far from the end of their queues.
struct QueueLevel {
  int kind = 0;
  int from_end = 0;
  PlaceCost potential = 0;
  std::vector<int> jobs;
  int64_t shortest = 0;  // of its jobs
  int64_t longest = 0;
  // Of the search that is going on:
  PlaceCost distance = kUnreached;
  int reached_by = -1;    // the job that would move here
  int reached_from = -1;  // the level it leaves; -1 for the new job
  bool settled = false;
};

class QueueSolver {
 public:
  explicit QueueSolver(const QueueProblem& problem) : problem_(problem), free_at_(problem.free_at) {
    for (auto& times : free_at_) std::sort(times.begin(), times.end());
    levels_of_kind_.resize(free_at_.size());
    for (size_t kind = 0; kind < free_at_.size(); ++kind) add_level(static_cast<int>(kind));
  }

  void solve() {
    for (const int job : longest_first()) insert(job);
  }

  std::vector<QueuePlace> places() const;

 private:
  // Long jobs go to the ends of queues: in this order most jobs find their final level at once.
  std::vector<int> longest_first() const {
    std::vector<int64_t> shortest(problem_.durations.size());
    for (size_t job = 0; job < shortest.size(); ++job) shortest[job] = shortest_of(job);
    std::vector<int> order(shortest.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shortest[a] > shortest[b]; });
    return order;
  }

  int64_t shortest_of(size_t job) const {
    int64_t shortest = -1;
    for (size_t kind = 0; kind < free_at_.size(); ++kind) {
      const int64_t duration = problem_.durations[job][kind];
      if (duration == kCannotRun || free_at_[kind].empty()) continue;
      shortest = shortest < 0 ? duration : std::min(shortest, duration);
    }
    CHECK(shortest >= 0, "a job that no machine can run was to be assigned");
    return shortest;
  }

  // A level is made when the one before it fills its first place: an unused level further out is never better.
  void add_level(int kind) {
    if (free_at_[kind].empty()) return;
    levels_of_kind_[kind].push_back(static_cast<int>(levels_.size()));
    QueueLevel level;
    level.kind = kind;
    level.from_end = static_cast<int>(levels_of_kind_[kind].size());
    level.potential = -waiting_cost(free_at_[kind].front());
    levels_.push_back(level);
  }

  int64_t duration(int job, int kind) const { return problem_.durations[job][kind]; }
  PlaceCost cost(int job, const QueueLevel& level) const {
    return place_cost(level.from_end, duration(job, level.kind));
  }

  void relax(int job, int from, PlaceCost base, int to) {
    QueueLevel& level = levels_[to];
    if (level.settled) return;
    const PlaceCost distance = base + cost(job, level) - level.potential;
    if (distance >= level.distance) return;
    if (level.distance == kUnreached) reached_.push_back(to);
    level.distance = distance;
    to_settle_.push({distance, to});
    level.reached_by = job;
    level.reached_from = from;
  }

  // A job that comes to a kind takes the level that its duration belongs to; others are reached from there step by step
  // for no more, as the durations of each level are at least those of the next.
  void relax_kind(int job, int from, PlaceCost base, int kind) {
    const auto& levels = levels_of_kind_[kind];
    const int64_t own = duration(job, kind);
    if (own == kCannotRun || levels.empty()) return;
    const auto place = std::partition_point(levels.begin(), levels.end(), [&](int index) {
      return !levels_[index].jobs.empty() && levels_[index].shortest > own;
    });
    if (place != levels.end()) relax(job, from, base, *place);
    if (place != levels.begin()) relax(job, from, base, *(place - 1));
  }

  // The ways out of a level: each of its jobs to the other kinds, its shortest one step up, its longest one step down.
  void relax_from(int index) {
    const QueueLevel& level = levels_[index];
    const auto& levels = levels_of_kind_[level.kind];
    const auto place = static_cast<size_t>(level.from_end - 1);
    for (const int job : level.jobs) {
      const PlaceCost base = level.distance - cost(job, level) + level.potential;
      for (size_t kind = 0; kind < levels_of_kind_.size(); ++kind) {
        if (static_cast<int>(kind) != level.kind) relax_kind(job, index, base, static_cast<int>(kind));
      }
      const int64_t own = duration(job, level.kind);
      if (own == level.shortest && place + 1 < levels.size()) relax(job, index, base, levels[place + 1]);
      if (own == level.longest && place > 0) relax(job, index, base, levels[place - 1]);
    }
  }

  // The reached level that is nearest and not settled, of equals the first; -1: none is nearer than `best`.
  int take_nearest(PlaceCost best) {
    while (!to_settle_.empty()) {
      const auto [distance, index] = to_settle_.top();
      if (distance >= best) return -1;
      to_settle_.pop();
      if (!levels_[index].settled && levels_[index].distance == distance) return index;
    }
    return -1;
  }

  void begin_search() {
    for (const int index : reached_) {
      levels_[index].distance = kUnreached;
      levels_[index].settled = false;
    }
    reached_.clear();
    to_settle_ = {};
  }

  // Shortest augmenting path from a new job to a free place (Dijkstra on reduced costs). Touches the levels it reaches and no
  // others: where many machines are free late, jobs queue up on few, in hundreds of levels.
  void insert(int job) {
    begin_search();
    for (size_t kind = 0; kind < levels_of_kind_.size(); ++kind) relax_kind(job, -1, 0, static_cast<int>(kind));
    PlaceCost best = kUnreached;
    int end = -1;
    for (int nearest = take_nearest(best); nearest >= 0; nearest = take_nearest(best)) {
      QueueLevel& level = levels_[nearest];
      level.settled = true;
      const auto& machines = free_at_[level.kind];
      if (level.jobs.size() < machines.size()) {
        const PlaceCost whole = level.distance + waiting_cost(machines[level.jobs.size()]) + level.potential;
        if (whole < best) {
          best = whole;
          end = nearest;
        }
      }
      relax_from(nearest);
    }
    CHECK(end >= 0, "every job can be put before all others of some machine");
    for (const int index : reached_) {
      QueueLevel& level = levels_[index];
      if (level.settled && level.distance < best) level.potential += level.distance - best;
    }
    augment(end);
  }

  void augment(int end) {
    if (levels_[end].jobs.empty()) add_level(levels_[end].kind);
    for (int to = end; to >= 0;) {
      QueueLevel& level = levels_[to];
      const int from = level.reached_from;
      if (from >= 0) std::erase(levels_[from].jobs, level.reached_by);
      level.jobs.push_back(level.reached_by);
      to = from;
    }
    for (int to = end; to >= 0; to = levels_[to].reached_from) measure(levels_[to]);
  }

  void measure(QueueLevel& level) const {
    level.shortest = level.longest = duration(level.jobs.front(), level.kind);
    for (const int job : level.jobs) {
      level.shortest = std::min(level.shortest, duration(job, level.kind));
      level.longest = std::max(level.longest, duration(job, level.kind));
    }
  }

  const QueueProblem& problem_;
  std::vector<std::vector<int64_t>> free_at_;  // sorted
  std::vector<QueueLevel> levels_;
  std::vector<std::vector<int>> levels_of_kind_;
  std::vector<int> reached_;  // by the search that is going on
  using Reached = std::pair<PlaceCost, int>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> to_settle_;  // with what has become nearer since
};

std::vector<QueuePlace> QueueSolver::places() const {
  std::vector<QueuePlace> places(problem_.durations.size());
  for (size_t kind = 0; kind < free_at_.size(); ++kind) {
    // Machines in the order in which they become free; those that come first have the longer queues.
    std::vector<int> machines(free_at_[kind].size());
    std::iota(machines.begin(), machines.end(), 0);
    const auto& free_at = problem_.free_at[kind];
    std::stable_sort(machines.begin(), machines.end(), [&](int a, int b) { return free_at[a] < free_at[b]; });
    std::vector<int64_t> end = free_at_[kind];
    for (size_t k = levels_of_kind_[kind].size(); k-- > 0;) {
      const QueueLevel& level = levels_[levels_of_kind_[kind][k]];
      std::vector<int> jobs = level.jobs;
      std::sort(jobs.begin(), jobs.end());
      for (size_t i = 0; i < jobs.size(); ++i) {
        places[jobs[i]] = {static_cast<int>(kind), machines[i], level.from_end, end[i]};
        end[i] += duration(jobs[i], static_cast<int>(kind));
      }
    }
  }
  return places;
}

}  // namespace

std::vector<QueuePlace> assign_to_queues(const QueueProblem& problem) {
  QueueSolver solver(problem);
  solver.solve();
  return solver.places();
}

std::vector<int> reference_assign(std::span<const std::vector<int64_t>> cost) {
  const size_t rows = cost.size();
  const size_t columns = rows == 0 ? 0 : cost[0].size();
  CHECK(columns >= rows, "an assignment needs a column for every row");
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;
  std::vector<int64_t> row_price(rows + 1);
  std::vector<int64_t> column_price(columns + 1);
  std::vector<size_t> row_of(columns + 1);  // 0: free; column 0 holds the row that looks for one
  for (size_t row = 1; row <= rows; ++row) {
    row_of[0] = row;
    std::vector<int64_t> slack(columns + 1, kFar);
    std::vector<size_t> before(columns + 1);
    std::vector<bool> seen(columns + 1);
    size_t column = 0;
    do {
      seen[column] = true;
      const size_t holder = row_of[column];
      int64_t step = kFar;
      size_t next = 0;
      for (size_t j = 1; j <= columns; ++j) {
        if (seen[j]) continue;
        const int64_t reduced = cost[holder - 1][j - 1] - row_price[holder] - column_price[j];
        if (reduced < slack[j]) {
          slack[j] = reduced;
          before[j] = column;
        }
        if (slack[j] < step) {
          step = slack[j];
          next = j;
        }
      }
      for (size_t j = 0; j <= columns; ++j) {
        if (seen[j]) {
          row_price[row_of[j]] += step;
          column_price[j] -= step;
        } else {
          slack[j] -= step;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    for (; column != 0; column = before[column]) row_of[column] = row_of[before[column]];
  }
  std::vector<int> column_of(rows, -1);
  for (size_t j = 1; j <= columns; ++j) {
    if (row_of[j] != 0) column_of[row_of[j] - 1] = static_cast<int>(j - 1);
  }
  return column_of;
}

QueueTotals totals_of(const QueueProblem& problem, std::span<const QueuePlace> places) {
  QueueTotals totals;
  for (size_t job = 0; job < places.size(); ++job) {
    const int64_t duration = problem.durations[job][static_cast<size_t>(places[job].kind)];
    totals.completion += places[job].start + duration;
    totals.running += duration;
  }
  return totals;
}

int64_t reference_least_completion(const QueueProblem& problem) {
  constexpr int64_t kForbidden = int64_t{1} << 50;
  const size_t jobs = problem.durations.size();
  std::vector<std::vector<int64_t>> cost(jobs);
  for (size_t job = 0; job < jobs; ++job) {
    for (size_t kind = 0; kind < problem.free_at.size(); ++kind) {
      const int64_t duration = problem.durations[job][kind];
      for (const int64_t free_at : problem.free_at[kind]) {
        for (size_t k = 1; k <= jobs; ++k) {
          cost[job].push_back(duration == kCannotRun ? kForbidden : free_at + static_cast<int64_t>(k) * duration);
        }
      }
    }
  }
  const std::vector<int> column_of = reference_assign(cost);
  int64_t total = 0;
  for (size_t job = 0; job < jobs; ++job) total += cost[job][static_cast<size_t>(column_of[job])];
  return total;
}

}  // namespace forerun::cluster
