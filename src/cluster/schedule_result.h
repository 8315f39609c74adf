// What a simulation gives: when each job ran, and the figures that schedulers are compared by.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "cluster/job.h"
#include "cluster/machine.h"

namespace forerun::cluster {

// A stretch of time in which a job held GPUs.
struct Segment {
  JobIndex job = kNoJob;
  TypeIndex type = 0;
  int32_t gpus = 0;
  Time begin;
  Time end;
};

// How often a job's GPUs were taken away.
struct JobStops {
  int32_t preemptions = 0;  // by the policy
  int32_t failures = 0;     // of its nodes or GPUs
};

struct Schedule {
  // Why a simulation went no further.
  enum class Cut : uint8_t {
    none,
    end_of_time,  // a job would end beyond 292 years, which is as far as nanoseconds go
    failures,     // more failures than any cluster sees: jobs make next to no progress between them
    policy,       // the policy gave up: `fault` says why
    stopped       // SimulationOptions::work does not go on
  };
  std::vector<Time> start;        // by job: when it first got GPUs
  std::vector<Time> finish;       // by job; kNever: it never finished
  std::vector<Time> held;         // by job: how long it held GPUs, lost work and restarts included
  std::vector<JobStops> stops;    // by job
  std::vector<Segment> segments;  // in the order they ended; only where asked for
  Cut cut = Cut::none;            // otherwise jobs that had not ended have no finish
  std::optional<Error> fault;
  int64_t preemptions = 0;
  int64_t failures = 0;    // of nodes or GPUs
  int64_t restarts = 0;    // of jobs, after failures
  int64_t events = 0;      // instants at which the policy was asked
  double idle_wanted = 0;  // GPU seconds free while jobs waited: fragmentation or head-of-line blocking
  double gpu_seconds = 0;  // GPU seconds held
};

// Of a job that finished. A wait is all the time between arrival and end in which it held no GPUs; a slowdown its completion
// time over its own fastest duration.
Time completion_time(const Schedule& schedule, const Workload& workload, JobIndex job);
Time waiting_time(const Schedule& schedule, const Workload& workload, JobIndex job);
double slowdown(const Schedule& schedule, const Workload& workload, JobIndex job);

// Seconds, unless said otherwise.
struct Metrics {
  int64_t jobs = 0;
  int64_t unfinished = 0;
  double mean_jct = 0, median_jct = 0, p95_jct = 0, p99_jct = 0;
  double mean_wait = 0, median_wait = 0, p95_wait = 0, p99_wait = 0;
  double makespan = 0;                             // from the first arrival to the last end
  int64_t with_deadline = 0;                       // jobs
  int64_t late = 0;                                // jobs that ended after their deadline
  double total_tardiness = 0, mean_tardiness = 0;  // the mean is over the late ones
  double mean_slowdown = 0, p99_slowdown = 0;
  // Finish-time fairness: completion time / the time it would take on a 1/n share of the cluster, n = mean jobs present.
  double mean_fairness = 0, worst_fairness = 0;
  double utilisation = 0;    // GPU time held / (GPUs x makespan)
  double fragmentation = 0;  // GPU time free while jobs waited / (GPUs x makespan)
  int64_t preemptions = 0;
  int64_t failures = 0;
};

Metrics metrics_of(const Schedule& schedule, const Workload& workload, const Cluster& cluster);

}  // namespace forerun::cluster
