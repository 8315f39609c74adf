// Plays an order of gangs forward, by predicted durations, to see what it comes to: Hydra's plans of one GPU per job do
// not tell how gangs fit beside each other.
//
// At the start and at every end jobs are taken in their order: each starts if its gang is free on its type (or, where none
// is set, on the fastest type that has it free). One that does not fit holds up all behind it, or is skipped.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/assignment.h"
#include "cluster/queue_sequence.h"

namespace forerun::cluster {

struct GangJob {
  int32_t gpus = 1;
  std::vector<int64_t> durations;  // by type, or kCannotRun
  int64_t deadline = kNoDeadline;
};

struct BusyGpus {
  int64_t until = 0;
  int32_t type = 0;
  int32_t gpus = 1;
};

struct GangProblem {
  std::vector<GangJob> jobs;
  std::vector<int32_t> free;   // by type, at 0
  std::vector<BusyGpus> busy;  // and when others become free
};

struct GangOrder {
  std::vector<int> jobs;   // each once
  std::vector<int> types;  // by job; -1: the fastest that is free. Empty: so for all
  bool skip = false;
};

struct GangPlayout {
  std::vector<QueuePlace> places;  // by job: kind and start
  SequenceCost cost;
};

GangPlayout play_out(const GangProblem& problem, const GangOrder& order);
// Its plain twin, which looks at every waiting job at every end.
GangPlayout reference_play_out(const GangProblem& problem, const GangOrder& order);

// The best of the orders, improved: late jobs are moved forward one at a time while that helps, in at most `most_tries`
// playouts.
GangPlayout best_playout(const GangProblem& problem, const std::vector<GangOrder>& orders, int most_tries);

}  // namespace forerun::cluster
