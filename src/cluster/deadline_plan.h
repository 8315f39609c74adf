// Queues for many unlike machines that mind deadlines: least total tardiness first, then least sum of completion times
// (Hydra).
//
// Starts: Hydra's greedy (again and again the job and machine whose best sequence grows cheapest), the matching of
// AlloX with each queue put in its best order, and earliest deadline first, whose tardiness is thereby never exceeded.
// The best of them is then improved by moving single jobs and exchanging pairs between queues, at first those of queues
// with late jobs, until nothing helps or the budget of sequences looked at is spent: a count, not a time.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/assignment.h"
#include "cluster/queue_sequence.h"

namespace forerun::cluster {

struct DeadlineProblem {
  QueueProblem queues;
  // By job and kind as queues.durations: the deadline; kNoDeadline for none. (By kind, as a gang that is planned on one
  // machine of a kind takes longer there than it will.)
  std::vector<std::vector<int64_t>> deadlines;
};

struct DeadlinePlanOptions {
  int greedy_jobs = 600;  // more jobs than this: Hydra's greedy is left out, which takes jobs * jobs sequences
  // Of the last improvement; those before get a quarter. A look at two queues is two steps or, closely, twenty more.
  int64_t most_steps = 3'000'000;
  int most_nodes = 500;  // of branch and bound in one queue
};

struct DeadlinePlan {
  std::vector<QueuePlace> places;  // by job
  SequenceCost cost;
};

DeadlinePlan plan_with_deadlines(const DeadlineProblem& problem, const DeadlinePlanOptions& options = {});

// The starts, each with its cost; without improvement.
DeadlinePlan plan_greedily(const DeadlineProblem& problem);
DeadlinePlan plan_by_matching(const DeadlineProblem& problem, const DeadlinePlanOptions& options);
DeadlinePlan plan_earliest_deadline(const DeadlineProblem& problem);

}  // namespace forerun::cluster
