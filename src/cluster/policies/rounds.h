// Policies that share GPUs by time, in rounds: at the start of each round they say which jobs run where, and whatever
// does not stands back until the next.
//
// Between rounds free GPUs go to waiting jobs, those with the largest claim() first, then in order of arrival, each to its
// fastest type, and nobody is stopped. A job that keeps its GPUs from one round to the next does not notice the change. Two single-GPU jobs may share a GPU, where
// their speeds together were measured; an elastic job may be given another number of GPUs than it states.
#pragma once

#include <map>
#include <vector>

#include "cluster/policy.h"

namespace forerun::cluster {

struct RoundChoice {
  JobIndex job = kNoJob;
  TypeIndex type = 0;
  int32_t gpus = 0;           // 0: as many as it states
  JobIndex partner = kNoJob;  // with which it shares a GPU
  friend auto operator<=>(const RoundChoice&, const RoundChoice&) = default;
};

class RoundPolicy : public Policy {
 public:
  explicit RoundPolicy(Time round) : round_(round) {}

  void arrived(const ClusterView& view, JobIndex job) override;
  void finished(const ClusterView& view, JobIndex job) override;
  void stopped(const ClusterView& view, JobIndex job) override;
  void schedule(Scheduler& scheduler) override;

 protected:
  // Asked at the start of a round: jobs and types, the most wanted first; a job may come several times, and takes the first
  // that has room. `active` are all jobs that wait or run, in order of arrival.
  virtual std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) = 0;
  // Called once for each round, with who got what.
  virtual void granted(const ClusterView& view, const std::vector<RoundChoice>& taken) { (void)view, (void)taken; }
  // Who gets GPUs that become free before the round is over; ties: the earlier.
  virtual double claim(JobIndex job) const { return (void)job, 0; }
  // It did, for that share of a round at most.
  virtual void filled(JobIndex job, TypeIndex type, double share) { (void)job, (void)type, (void)share; }
  // When a job has to give its GPUs to those that wait, before the round is over.
  virtual Time lease_end(JobIndex job) const { return (void)job, kNever; }
  // The set of jobs has changed since the last call of choices().
  [[nodiscard]] bool changed() const { return changed_; }
  [[nodiscard]] Time round() const { return round_; }

 private:
  using Places = std::map<JobIndex, const RoundChoice*>;  // by job, partners too

  std::vector<RoundChoice> pack(const ClusterView& view);
  void turn(Scheduler& scheduler);  // of rounds
  void fill(Scheduler& scheduler);
  void end_leases(Scheduler& scheduler);
  static std::vector<JobIndex> leaving(const ClusterView& view, const Places& places);
  static void start(Scheduler& scheduler, const RoundChoice& choice);

  Time round_;
  Time next_{0};
  bool changed_ = true;
  std::vector<JobIndex> active_;
};

// The types that a job can run on, the fastest first.
std::vector<TypeIndex> types_by_speed(const ClusterView& view, JobIndex job);

}  // namespace forerun::cluster
