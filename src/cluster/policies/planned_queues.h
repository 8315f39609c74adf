// Policies that plan a queue for every GPU and keep to the plan until something happens that it did not foresee.
//
// A plan is made anew when a job arrives or is stopped, when one ends at another time than predicted, and when GPUs fail
// or return. Between plans each type of GPU starts its jobs in the order of their planned starts, as soon as the first
// of them fits. With one GPU per job and right predictions that is the plan to the nanosecond. A gang is planned as all
// of its GPU time on one GPU, which ranks it by the area it takes; with_gangs() then plays the order forward with whole
// gangs. Running jobs are left alone.
#pragma once

#include <vector>

#include "cluster/assignment.h"
#include "cluster/policy.h"

namespace forerun::cluster {

class PlannedQueues : public Policy {
 public:
  void begin(const ClusterView& view) override;
  void arrived(const ClusterView& view, JobIndex job) override;
  void finished(const ClusterView& view, JobIndex job) override;
  void schedule(Scheduler& scheduler) override;

 protected:
  // Places for these jobs, whose durations on the view's GPUs `problem` has (kinds are types); times count from now.
  virtual std::vector<QueuePlace> plan(const ClusterView& view, const std::vector<JobIndex>& jobs,
                                       const QueueProblem& problem) = 0;
  // The waiting jobs that take part in the next plan; asked again, with a higher round, while GPUs stay idle. None:
  // enough. By default all of them, once.
  virtual std::vector<JobIndex> candidates(const ClusterView& view, int round);
  // Whether the order of things changes from event to event, so that every event asks for a plan.
  [[nodiscard]] virtual bool always_replans() const { return false; }

  static bool any_gang(const ClusterView& view, const std::vector<JobIndex>& jobs);
  // Places that take account of whole gangs (gang_playout.h): the best of the order of `places`, with their types or with
  // any, and of shortest first, each with and without skipping what does not fit. With `deadlines`: least tardiness
  // first, earliest deadline first is tried too, and late jobs are moved forward.
  static std::vector<QueuePlace> with_gangs(const ClusterView& view, const std::vector<JobIndex>& jobs,
                                            const std::vector<QueuePlace>& places, bool deadlines);

  [[nodiscard]] const std::vector<JobIndex>& waiting() const { return waiting_; }
  // The problem's times are nanoseconds halved this often: 0 but for enormous ones.
  [[nodiscard]] int coarser() const { return coarser_; }
  [[nodiscard]] size_t arrived_since_plan() const { return arrived_since_plan_; }

 private:
  void make_plan(const ClusterView& view, const std::vector<JobIndex>& jobs);
  void start_what_fits(Scheduler& scheduler);

  std::vector<JobIndex> waiting_;                // in order of arrival
  std::vector<std::vector<JobIndex>> in_order_;  // by type: by planned start, the last one first
  std::vector<Time> planned_end_;                // by job, of those that run
  std::vector<int32_t> working_;                 // by type, when the plan was made
  size_t arrived_since_plan_ = 0;
  int coarser_ = 0;
  bool off_plan_ = true;
};

}  // namespace forerun::cluster
