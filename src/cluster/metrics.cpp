// Computes Metrics. Sums are of whole nanoseconds split into seconds and rest, so that they are exact for any number of
// jobs.
#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "cluster/schedule_result.h"

namespace forerun::cluster {
namespace {

class ExactSum {
 public:
  void add(Time time) {
    seconds_ += time.value / kSecond.value;
    rest_ += time.value % kSecond.value;
    ++count_;
  }
  [[nodiscard]] double sum() const { return static_cast<double>(seconds_) + static_cast<double>(rest_) * 1e-9; }
  [[nodiscard]] double mean() const { return count_ == 0 ? 0 : sum() / static_cast<double>(count_); }

 private:
  int64_t seconds_ = 0, rest_ = 0, count_ = 0;
};

struct Tally {
  ExactSum jct, wait, tardiness;
  std::vector<double> jcts, waits, slowdowns;
  Time first = kNever, last{std::numeric_limits<int64_t>::min()};
};

void add_job(Tally& tally, Metrics& metrics, const Schedule& schedule, const Workload& workload, JobIndex index) {
  const Job& job = workload.jobs[index];
  const Time finish = schedule.finish[index];
  const Time jct = completion_time(schedule, workload, index);
  const Time wait = waiting_time(schedule, workload, index);
  tally.jct.add(jct);
  tally.wait.add(wait);
  tally.jcts.push_back(seconds(jct));
  tally.waits.push_back(seconds(wait));
  tally.slowdowns.push_back(slowdown(schedule, workload, index));
  tally.first = std::min(tally.first, job.arrival);
  tally.last = std::max(tally.last, finish);
  if (job.deadline == kNever) return;
  ++metrics.with_deadline;
  if (finish > job.deadline) {
    ++metrics.late;
    tally.tardiness.add(finish - job.deadline);
  }
}

// Finish-time fairness after Themis: completion time over that on a fair share, an n-th of the cluster held alone, where
// n is the mean number of jobs present (Little's law) and a job cannot use more than its gang.
void add_fairness(Metrics& metrics, const Schedule& schedule, const Workload& workload, const Cluster& cluster) {
  if (metrics.jobs == 0 || metrics.makespan <= 0) return;
  const double present = std::max(1.0, metrics.mean_jct * static_cast<double>(metrics.jobs) / metrics.makespan);
  const double share = static_cast<double>(cluster.gpus()) / present;
  double sum = 0;
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    if (schedule.finish[job] == kNever) continue;
    const double fair = seconds(workload.truth.fastest(job)) * std::max(1.0, workload.jobs[job].gpus / share);
    const double ratio = seconds(schedule.finish[job] - workload.jobs[job].arrival) / std::max(fair, 1e-9);
    sum += ratio;
    metrics.worst_fairness = std::max(metrics.worst_fairness, ratio);
  }
  metrics.mean_fairness = sum / static_cast<double>(metrics.jobs);
}

}  // namespace

Time completion_time(const Schedule& schedule, const Workload& workload, JobIndex job) {
  return schedule.finish[job] - workload.jobs[job].arrival;
}

Time waiting_time(const Schedule& schedule, const Workload& workload, JobIndex job) {
  return completion_time(schedule, workload, job) - schedule.held[job];
}

double slowdown(const Schedule& schedule, const Workload& workload, JobIndex job) {
  const Time own = std::max(workload.truth.fastest(job), Time(1));
  return static_cast<double>(completion_time(schedule, workload, job).value) / static_cast<double>(own.value);
}

Metrics metrics_of(const Schedule& schedule, const Workload& workload, const Cluster& cluster) {
  Metrics metrics;
  Tally tally;
  for (std::vector<double>* values : {&tally.jcts, &tally.waits, &tally.slowdowns})
    values->reserve(workload.jobs.size());
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    if (schedule.finish[job] == kNever) {
      ++metrics.unfinished;
      continue;
    }
    ++metrics.jobs;
    add_job(tally, metrics, schedule, workload, job);
  }
  metrics.preemptions = schedule.preemptions;
  metrics.failures = schedule.failures;
  if (metrics.jobs == 0) return metrics;
  metrics.mean_jct = tally.jct.mean();
  metrics.mean_wait = tally.wait.mean();
  metrics.total_tardiness = tally.tardiness.sum();
  metrics.mean_tardiness = tally.tardiness.mean();
  metrics.median_jct = quantile_in_place(tally.jcts, 0.5);
  metrics.p95_jct = quantile_in_place(tally.jcts, 0.95);
  metrics.p99_jct = quantile_in_place(tally.jcts, 0.99);
  metrics.median_wait = quantile_in_place(tally.waits, 0.5);
  metrics.p95_wait = quantile_in_place(tally.waits, 0.95);
  metrics.p99_wait = quantile_in_place(tally.waits, 0.99);
  metrics.mean_slowdown = mean(tally.slowdowns);
  metrics.p99_slowdown = quantile_in_place(tally.slowdowns, 0.99);
  metrics.makespan = seconds(tally.last - tally.first);
  const double capacity = static_cast<double>(cluster.gpus()) * metrics.makespan;
  if (capacity > 0) {
    metrics.utilisation = schedule.gpu_seconds / capacity;
    metrics.fragmentation = schedule.idle_wanted / capacity;
  }
  add_fairness(metrics, schedule, workload, cluster);
  return metrics;
}

}  // namespace forerun::cluster
