// The plain twin of the simulator: every event looks at every job, sorts them all and walks the list.
//
// It knows the order policies by name (fifo, sjf, srsf, edf, each with -skip; srtf, srtf-skip, srsf-preempt, 2d-las, easy,
// conservative) and is written from their definitions, sharing no code with them. For tests: O(n^2) or worse. One restart cost, no
// failures.
#pragma once

#include <string>

#include "cluster/quota.h"
#include "cluster/schedule_result.h"

namespace forerun::cluster {

// Start and finish of every job.
Schedule reference_simulate(const Workload& workload, const Cluster& cluster, const Durations& predicted,
                            const std::string& policy, Time restart_cost = Time(0),
                            const std::vector<Quota>& quotas = {});

}  // namespace forerun::cluster
