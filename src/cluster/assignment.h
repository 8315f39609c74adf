// Least sum of completion times on unlike machines, as a min-cost assignment of jobs to queue positions (AlloX).
//
// A job that is k-th from the end of a machine's queue delays itself and k - 1 others, so it adds k * duration, plus the
// time at which the machine becomes free, to the sum of completion times. Machines of one kind differ only in that time,
// so the solver matches jobs to (kind, k) with as many places as the kind has machines, each place as expensive as its
// machine is late: shortest augmenting paths over a few dozen such levels instead of over thousands of positions. Within a kind the levels
// are sorted by duration, so only neighbouring ones need a way between them: n jobs take about n * n steps. Among
// equal sums it takes the one with the least running time. Left out: jobs on several machines at once, precedence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace forerun::cluster {

constexpr int64_t kCannotRun = -1;  // as a duration: the job does not run on this kind of machine

// What is to be assigned. Times are whole, at least 0, of any one unit, and below 2^60.
struct QueueProblem {
  std::vector<std::vector<int64_t>> free_at;    // [kind][machine]: when it can take its first job; any order
  std::vector<std::vector<int64_t>> durations;  // [job][kind], or kCannotRun; at least one kind per job can run it
};

struct QueuePlace {
  int kind = -1;
  int machine = -1;   // of that kind
  int from_end = 0;   // 1 for the last in its queue
  int64_t start = 0;  // by the durations given
};

std::vector<QueuePlace> assign_to_queues(const QueueProblem& problem);  // by job

struct QueueTotals {
  int64_t completion = 0;  // sum over the jobs of when they end
  int64_t running = 0;
};
QueueTotals totals_of(const QueueProblem& problem, std::span<const QueuePlace> places);

// A plain min-cost assignment: each row gets a column of its own, there are at least as many columns as rows; cost is
// [row][column]. Gives each row's column. Takes rows * rows * columns steps.
std::vector<int> reference_assign(std::span<const std::vector<int64_t>> cost);

// The twin of assign_to_queues: every (machine, k) is a column of reference_assign. Gives the least sum of completions.
int64_t reference_least_completion(const QueueProblem& problem);

}  // namespace forerun::cluster
