// ElasticShares: GPUs are handed out one by one to the jobs that gain most from one more.
//
// In rounds, at an arrival or end but no more often than every `interval`: each job present, in order of arrival, gets the
// fewest GPUs it can run with, as long as there are any; then each further GPU goes to the job whose gain from it is
// largest, until nobody gains. Jobs whose share has changed are stopped and start again with the new one, so a restart cost
// is paid. Between rounds waiting jobs start if their fewest GPUs are free. Jobs that are not elastic get their gang. A job
// stays with one GPU type: on arrival it is given to the usable pool with the fewest GPUs asked for per GPU.
//
// A Gain says what a job gets from one more GPU: double gain(view, job, type, gpus), at most 0 for nothing.
#pragma once

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "cluster/policy.h"

namespace forerun::cluster {

template <class Gain>
class ElasticShares final : public Policy {
 public:
  ElasticShares(Gain gain, Time interval) : gain_(gain), interval_(interval) {}

  void begin(const ClusterView& view) override { asked_.assign(view.types(), 0); }

  void arrived(const ClusterView& view, JobIndex job) override {
    TypeIndex best = kNoType;
    double least = 0;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (!view.usable(job, type)) continue;
      const double crowd = asked_[type] / view.cluster().pools[type].gpus;
      if (best == kNoType || crowd < least) {
        best = type;
        least = crowd;
      }
    }
    asked_[best] += view.job(job).gpus;
    present_[job] = best;
    changed_ = true;
  }

  void finished(const ClusterView& view, JobIndex job) override {
    asked_[present_[job]] -= view.job(job).gpus;
    present_.erase(job);
    changed_ = true;
  }

  void stopped(const ClusterView& /*view*/, JobIndex /*job*/) override { changed_ = true; }  // it is present still

  void schedule(Scheduler& scheduler) override {
    if (changed_ && scheduler.now() >= next_round_) {
      for (TypeIndex type = 0; type < scheduler.types(); ++type) round(scheduler, type);
      next_round_ = later(scheduler.now(), interval_);
      changed_ = false;
      return;
    }
    for (const auto& [job, type] : present_) {
      const int32_t least = fewest(scheduler, job);
      if (!scheduler.is_running(job) && least <= scheduler.free(type)) scheduler.start(job, type, least);
    }
    if (changed_) scheduler.wake_at(next_round_);
  }

 private:
  struct Offer {
    double gain = 0;
    JobIndex job = kNoJob;
    friend bool operator<(const Offer& a, const Offer& b) {  // the largest gain on top; ties: the earlier job
      return a.gain != b.gain ? a.gain < b.gain : a.job > b.job;
    }
  };

  static int32_t fewest(const ClusterView& view, JobIndex job) {
    return view.job(job).elastic() ? std::max(view.job(job).least_gpus, 1) : view.job(job).gpus;
  }
  static int32_t most(const ClusterView& view, JobIndex job) {
    return view.job(job).elastic() ? view.job(job).most_gpus : view.job(job).gpus;
  }

  void round(Scheduler& scheduler, TypeIndex type) {
    std::map<JobIndex, int32_t> shares;
    int32_t left = scheduler.working(type);
    std::priority_queue<Offer> offers;
    const auto offer = [&](JobIndex job, int32_t gpus) {
      if (gpus >= most(scheduler, job)) return;
      const double gain = gain_.gain(scheduler, job, type, gpus);
      if (gain > 0) offers.push({gain, job});
    };
    for (const auto& [job, where] : present_) {
      const int32_t least = fewest(scheduler, job);
      if (where != type || least > left) continue;
      left -= least;
      shares[job] = least;
      offer(job, least);
    }
    for (; left > 0 && !offers.empty(); --left) {
      const JobIndex job = offers.top().job;
      offers.pop();
      offer(job, ++shares[job]);
    }
    carry_out(scheduler, type, shares);
  }

  void carry_out(Scheduler& scheduler, TypeIndex type, const std::map<JobIndex, int32_t>& shares) {
    std::vector<JobIndex> stops;
    for (const Running& run : scheduler.running()) {
      if (run.type != type) continue;
      const auto share = shares.find(run.job);
      if (share == shares.end() || share->second != run.gpus) stops.push_back(run.job);
    }
    std::sort(stops.begin(), stops.end());
    for (const JobIndex job : stops) scheduler.preempt(job);
    for (const auto& [job, gpus] : shares) {
      if (!scheduler.is_running(job)) scheduler.start(job, type, gpus);
    }
  }

  Gain gain_;
  Time interval_;
  Time next_round_;
  bool changed_ = false;
  std::map<JobIndex, TypeIndex> present_;  // running and waiting jobs, in order of arrival, and their pool
  std::vector<double> asked_;              // by type: GPUs asked for by present jobs
};

}  // namespace forerun::cluster
