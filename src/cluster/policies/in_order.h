// Policies that start waiting jobs by priority, then by a key fixed at arrival, and never stop a running one.
//
// HeadOfLine: the first in line starts as soon as it fits; until then nobody behind it does.
// SkipOver: the line is walked from its head, and whatever fits starts.
// A job runs on the type it is predicted to be fastest on, of those that have its gang free.
#pragma once

#include "cluster/waiting_queues.h"

namespace forerun::cluster {

using KeyOfJob = int64_t (*)(const ClusterView& view, JobIndex job);

class HeadOfLine final : public Policy {
 public:
  explicit HeadOfLine(KeyOfJob key) : key_(key) {}
  void arrived(const ClusterView& view, JobIndex job) override {
    queue_.add({key_(view, job), job, rank_of(view, job)});
  }
  void schedule(Scheduler& scheduler) override {
    while (!queue_.empty()) {
      const JobIndex job = queue_.first().job;
      const auto type = scheduler.fastest_free(job);
      if (!type) return;
      queue_.pop();
      scheduler.start(job, *type);
    }
  }

 private:
  KeyOfJob key_;
  HeadQueue queue_;
};

class SkipOver final : public Policy {
 public:
  explicit SkipOver(KeyOfJob key) : key_(key) {}
  void arrived(const ClusterView& view, JobIndex job) override {
    queue_.add(view, {key_(view, job), job, rank_of(view, job)});
  }
  void schedule(Scheduler& scheduler) override {
    while (const auto next = queue_.take_first_fitting(scheduler)) {
      scheduler.start(next->job, *scheduler.fastest_free(next->job));
    }
  }

 private:
  KeyOfJob key_;
  SkipQueue queue_;
};

}  // namespace forerun::cluster
