// The order of jobs on one machine: no more tardiness than must be, then the least sum of completion times.
//
// Shortest first is best where it makes nobody late. Where some order meets all deadlines, Smith's rule gives the best of
// those: from the end backwards, the longest job that may end there. Else branch and bound over prefixes (Hydra): jobs
// without deadline keep shortest-first order; the bound is the rest, shortest first, with each job late only by itself;
// it looks at a fixed number of nodes, so that the answer does not depend on how fast the machine is. It starts from
// Hydra's swap heuristic: a late job moves forward past its neighbours while that helps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace forerun::cluster {

constexpr int64_t kNoDeadline = INT64_MAX;

struct QueueJob {
  int64_t duration = 0;
  int64_t deadline = kNoDeadline;
};

// What an order costs; a little tardiness is worse than any completion time.
struct SequenceCost {
  double tardiness = 0;   // doubles hold whole nanoseconds of 100 days exactly, and cannot overflow
  double completion = 0;  // sum
  friend bool operator<(const SequenceCost& a, const SequenceCost& b) {
    return a.tardiness != b.tardiness ? a.tardiness < b.tardiness : a.completion < b.completion;
  }
  friend SequenceCost operator+(SequenceCost a, const SequenceCost& b) {
    return {a.tardiness + b.tardiness, a.completion + b.completion};
  }
  friend SequenceCost operator-(SequenceCost a, const SequenceCost& b) {
    return {a.tardiness - b.tardiness, a.completion - b.completion};
  }
  bool operator==(const SequenceCost&) const = default;
};

struct Sequence {
  std::vector<int> order;  // indices into the jobs
  SequenceCost cost;
};

// The machine is free at `start`. `most_nodes` bounds branch and bound; 0 leaves it out.
Sequence best_sequence(int64_t start, std::span<const QueueJob> jobs, int most_nodes);

// What an order costs.
SequenceCost cost_of_order(int64_t start, std::span<const QueueJob> jobs, std::span<const int> order);

// The parts, for tests: shortest first improved by the swap heuristic; every order tried.
Sequence swap_late_forward(int64_t start, std::span<const QueueJob> jobs, std::vector<int> order);
Sequence reference_best_sequence(int64_t start, std::span<const QueueJob> jobs);

}  // namespace forerun::cluster
