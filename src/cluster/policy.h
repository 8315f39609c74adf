// Policy: decides which waiting jobs start, where, and which running ones give way.
//
// The engine tells a policy what happened (arrived, finished, stopped) and then, once per instant at which something
// did, calls schedule(). Order within an instant: ends and failures by (time, sequence of starting), then arrivals by
// (time, order of the source), then schedule(). A policy keeps its own queue. It sees what a scheduler could know:
// what users stated, predicted durations and the past; true durations are out of reach.
//
// A new policy is one file in policies/ and one line in policies.cpp.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "cluster/job.h"
#include "cluster/machine.h"

namespace forerun::cluster {

// A job that holds GPUs now.
struct Running {
  JobIndex job = kNoJob;
  TypeIndex type = 0;
  int32_t gpus = 0;
  Time since;                 // when it got them
  Time restart;               // how long it makes no progress first
  Time predicted_end;         // since + restart + what was predicted to remain
  JobIndex partner = kNoJob;  // with which it shares its GPU
  float speed = 1;            // against its whole gang, undisturbed: less where it is spread out, packed or shrunk
};

class ClusterView {
 public:
  ClusterView() = default;
  virtual ~ClusterView() = default;
  ClusterView(const ClusterView&) = delete;
  ClusterView& operator=(const ClusterView&) = delete;

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }
  [[nodiscard]] size_t types() const { return free_.size(); }
  [[nodiscard]] int32_t free(TypeIndex type) const { return free_[type]; }
  [[nodiscard]] const std::vector<int32_t>& all_free() const { return free_; }    // by type
  [[nodiscard]] int32_t working(TypeIndex type) const { return working_[type]; }  // GPUs that have not failed

  [[nodiscard]] const Job& job(JobIndex job) const { return jobs_[job]; }
  // What it is called, whose it is and what it trains; empty where that is not stated.
  [[nodiscard]] std::string name_of(JobIndex job) const { return named_->name_of(job); }
  [[nodiscard]] std::string user_of(JobIndex job) const { return stated(named_->users, jobs_[job].user); }
  [[nodiscard]] std::string group_of(JobIndex job) const {
    return stated(named_->virtual_clusters, jobs_[job].virtual_cluster);
  }
  [[nodiscard]] std::string model_of(JobIndex job) const { return stated(named_->kinds, jobs_[job].kind); }
  // The job's whole predicted duration on a type; kNever: it cannot run there.
  [[nodiscard]] Time predicted(JobIndex job, TypeIndex type) const { return predicted_->of(job, type); }
  [[nodiscard]] Time predicted_fastest(JobIndex job) const { return predicted_->fastest(job); }
  // What is left of it by the prediction, if it ran on that type; 0 once it has overrun.
  [[nodiscard]] Time predicted_remaining(JobIndex job, TypeIndex type) const;
  // How fast it is predicted to run with so many GPUs of a type, relative to its stated ones.
  [[nodiscard]] double predicted_speed(JobIndex job, TypeIndex type, int32_t gpus) const;
  // The speeds of two single-GPU jobs if they shared a GPU of that type; nothing where that was not measured, or where the
  // pool has nodes.
  [[nodiscard]] std::optional<std::pair<double, double>> packed_speeds(JobIndex a, JobIndex b, TypeIndex type) const;
  [[nodiscard]] bool any_pairs() const { return packing_ != nullptr && !packing_->empty(); }
  // How long it has held GPUs so far.
  [[nodiscard]] Time attained(JobIndex job) const;

  // The running jobs, in no particular but a repeatable order; invalid after the next start or preempt.
  [[nodiscard]] std::span<const Running> running() const { return running_; }
  [[nodiscard]] bool is_running(JobIndex job) const { return slot_[job] != kNoSlot; }
  [[nodiscard]] const Running& running(JobIndex job) const { return running_[slot_[job]]; }

  // Whether the job could run on that type at all: duration, memory and size of the pool.
  [[nodiscard]] bool usable(JobIndex job, TypeIndex type) const;
  // Whether its gang is free there now.
  [[nodiscard]] bool fits(JobIndex job, TypeIndex type) const {
    return jobs_[job].gpus <= free_[type] && (types() == 1 || usable(job, type));
  }
  // Of the types that have its gang free now the one it is predicted to run fastest on; ties: the first.
  [[nodiscard]] std::optional<TypeIndex> fastest_free(JobIndex job) const;

 protected:
  static constexpr uint32_t kNoSlot = std::numeric_limits<uint32_t>::max();

  Time now_;
  const Cluster* cluster_ = nullptr;
  const Job* jobs_ = nullptr;
  const Workload* named_ = nullptr;  // for names; what else it has is not for policies
  const Durations* predicted_ = nullptr;
  const SpeedModel* speeds_ = nullptr;
  const PackingModel* packing_ = nullptr;
  std::vector<int32_t> free_;     // by type
  std::vector<int32_t> working_;  // by type
  std::vector<Running> running_;
  std::vector<uint32_t> slot_;  // by job: its place in running_, or kNoSlot
  std::vector<Time> held_;      // by job: how long it held GPUs, up to when it last stopped
  std::vector<Time> progress_;  // by job: the useful part of that, as time of the undisturbed gang on its fastest type

 private:
  static std::string stated(const std::vector<std::string>& names, int32_t index) {
    return index < 0 ? "" : names[static_cast<size_t>(index)];
  }
};

// What a policy may do. Each call is one lookup or O(log n).
class Scheduler : public ClusterView {
 public:
  // Gives the waiting job its gang on that type; it must fit (fits()). `gpus` other than 0: an elastic job's choice.
  virtual void start(JobIndex job, TypeIndex type, int32_t gpus = 0) = 0;
  // Lets a waiting single-GPU job share the GPU of a running one that is alone on it; packed_speeds() must know the pair.
  virtual void share(JobIndex job, JobIndex partner) = 0;
  // Takes the GPUs away from a running job. It waits again (no stopped() for this), keeps its progress, and pays the
  // restart cost when it next starts.
  virtual void preempt(JobIndex job) = 0;
  // schedule() is to be called again at that time at the latest. Holds until the next call of schedule().
  virtual void wake_at(Time time) = 0;
  // The policy cannot go on: the simulation ends here, with Schedule::fault.
  virtual void give_up(Error why) = 0;
  // Whether somebody still waits for the simulation, for policies that take long to decide.
  virtual bool goes_on() = 0;
};

class Policy {
 public:
  Policy() = default;
  virtual ~Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  // Before the first event.
  virtual void begin(const ClusterView& view) { (void)view; }
  virtual void arrived(const ClusterView& view, JobIndex job) = 0;
  virtual void finished(const ClusterView& view, JobIndex job) { (void)view, (void)job; }
  // A failure took a running job's GPUs: it waits again.
  virtual void stopped(const ClusterView& view, JobIndex job) { arrived(view, job); }
  virtual void schedule(Scheduler& scheduler) = 0;
};

}  // namespace forerun::cluster
