// simulate(): plays a workload on a cluster under a policy, event by event, in integer time.
//
// Arrivals come from the sorted workload, ends from a heap by (time, sequence of starting); the policy is asked once per
// instant. The same arguments give the same schedule, bit for bit; nothing is shared between two simulations.
#pragma once

#include "base/work_control.h"
#include "cluster/policy.h"
#include "cluster/quota.h"
#include "cluster/schedule_result.h"

namespace forerun::cluster {

// Failures of whole nodes (of single GPUs where a pool has none), exponential between failures of one unit.
struct FailureModel {
  double mean_hours_between = 0;  // of one unit; 0: none fail
  Time repair{3600 * kSecond.value};
  Time checkpoint_every;  // work since the last checkpoint is lost; 0: none is lost
  uint64_t seed = 1;
};

struct SimulationOptions {
  Time restart_cost;  // a job that was stopped runs this long without progress when it next starts
  FailureModel failures;
  // Without measured speeds and known traffic, what a gang loses of its speed by every doubling of its nodes beyond the fewest it needs, and
  // once more if it spans racks. Only pools with nodes know where a gang is.
  double node_loss = 0, rack_loss = 0;
  std::vector<Quota> quotas;  // of users and groups, checked (check_quotas)
  bool keep_segments = false;
  Work* work = nullptr;  // counts jobs that have ended, and may cut the simulation; several may share one
};

// `predicted` has the workload's jobs; pass workload.truth for perfect knowledge. Every job must be able to run
// (can_ever_run). A job that the policy never starts has no finish; Schedule::cut says where a simulation cannot go on.
Schedule simulate(const Workload& workload, const Cluster& cluster, const Durations& predicted, Policy& policy,
                  const SimulationOptions& options = {});

}  // namespace forerun::cluster
