// Policies that share GPUs by time, in rounds: at the start of each round they say which jobs run where, and whatever
// does not stands back until the next.
//
// Between rounds free GPUs go to waiting jobs in the same order of preference, and nobody is stopped. A job that keeps
// its GPUs from one round to the next does not notice the change. Jobs run with their stated gang.
#pragma once

#include <vector>

#include "cluster/policy.h"

namespace forerun::cluster {

struct RoundChoice {
  JobIndex job = kNoJob;
  TypeIndex type = 0;
};

class RoundPolicy : public Policy {
 public:
  explicit RoundPolicy(Time round) : round_(round) {}

  void arrived(const ClusterView& view, JobIndex job) override;
  void finished(const ClusterView& view, JobIndex job) override;
  void stopped(const ClusterView& view, JobIndex job) override;
  void schedule(Scheduler& scheduler) override;

 protected:
  // Jobs and types, the most wanted first; a job may come several times, and takes the first that has room. `active` are
  // all jobs that wait or run, in order of arrival.
  virtual std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) = 0;
  // Called once for each round, with who got what.
  virtual void granted(const ClusterView& view, const std::vector<RoundChoice>& taken) { (void)view, (void)taken; }
  // The set of jobs has changed since the last call of choices().
  [[nodiscard]] bool changed() const { return changed_; }
  [[nodiscard]] Time round() const { return round_; }

 private:
  std::vector<RoundChoice> pack(const ClusterView& view, bool anew);
  void turn(Scheduler& scheduler);  // of rounds
  void fill(Scheduler& scheduler);

  Time round_;
  Time next_{0};
  bool changed_ = true;
  std::vector<JobIndex> active_;
};

}  // namespace forerun::cluster
