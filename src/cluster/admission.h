// Admission: which of the jobs that were submitted a policy gets to see.
//
// A job that is to run after others is held back until they have ended; then one that would take its user, group or array
// beyond what these may take up at once, until earlier ones have ended. From being admitted until it ends a job counts
// against its quotas, whether it runs or waits, as Kubernetes' queues (Kueue) reserve them. Under one quota jobs are admitted
// in order of submission: one that is held up holds up those behind it. So no policy needs to know of any of this, and none
// can break it.
#pragma once

#include <set>
#include <vector>

#include "cluster/job.h"
#include "cluster/quota.h"

namespace forerun::cluster {

class Admission {
 public:
  Admission(const Workload& workload, const std::vector<Quota>& quotas);

  // Whether any job may be held back at all.
  [[nodiscard]] bool active() const { return active_; }
  void submitted(JobIndex job);
  void finished(JobIndex job);
  // The jobs that can be admitted now, by number: once an instant, when all that happens in it is known.
  std::vector<JobIndex> admit();

 private:
  // Jobs that share what one quota allows.
  struct Lane {
    int64_t most = 0;
    int64_t used = 0;
    std::set<JobIndex> held_back;
  };
  struct Share {
    size_t lane = 0;
    int32_t weight = 0;  // GPUs, or one job of an array
  };

  void add_quota_lanes(const std::vector<Quota>& quotas, Quota::Of of);
  void add_array_lanes();
  void consider(JobIndex job);  // it has been submitted, and nothing that it runs after is left
  [[nodiscard]] bool admissible(JobIndex job) const;

  const Workload& workload_;
  bool active_ = false;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Share>> shares_;         // by job; empty: no quotas
  std::vector<int32_t> to_wait_for_;               // by job: others that have not ended, and 1 until it is submitted
  std::vector<std::vector<JobIndex>> dependants_;  // by job; empty: no job runs after another
  std::vector<JobIndex> free_;                     // that no quota holds back, since last asked
  std::vector<size_t> changed_;                    // lanes, since last asked
};

}  // namespace forerun::cluster
