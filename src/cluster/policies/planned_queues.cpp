#include "cluster/policies/planned_queues.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "cluster/gang_playout.h"
#include "cluster/service.h"

namespace forerun::cluster {
namespace {

// When each working GPU of a type takes its next job, counted from now: free ones at once, the others when their jobs
// are predicted to end. A job that has overrun holds its GPU back by the least there is.
std::vector<std::vector<int64_t>> free_times(const ClusterView& view) {
  std::vector<std::vector<int64_t>> times(view.types());
  for (TypeIndex type = 0; type < view.types(); ++type) times[type].assign(static_cast<size_t>(view.free(type)), 0);
  for (const Running& run : view.running()) {
    const int64_t rest = std::max<int64_t>((run.predicted_end - view.now()).value, 1);
    times[run.type].insert(times[run.type].end(), static_cast<size_t>(run.gpus), rest);
  }
  return times;
}

// How often times must be halved so that no sum of them overflows: 0 below 73 years of GPU time.
int halvings_needed(const QueueProblem& problem) {
  double sum = 0;
  for (const auto& times : problem.durations) {
    sum += static_cast<double>(*std::max_element(times.begin(), times.end()));
  }
  for (const auto& times : problem.free_at) {
    for (const int64_t time : times) sum = std::max(sum, 2 * static_cast<double>(time));
  }
  int halvings = 0;
  for (; sum > 0x1p61; sum /= 2) ++halvings;
  return halvings;
}

void halve(std::vector<int64_t>& times, int halvings) {
  for (int64_t& time : times) {
    if (time != kCannotRun) time >>= halvings;
  }
}

constexpr int kMostPlayouts = 200;
constexpr int64_t kLongestPlayed = int64_t{1} << 56;  // two years, of which a hundred can be added

GangProblem gang_problem(const ClusterView& view, const std::vector<JobIndex>& jobs, bool deadlines) {
  GangProblem problem;
  for (const JobIndex job : jobs) {
    const Job& stated = view.job(job);
    GangJob gang{stated.gpus, {}, kNoDeadline};
    if (deadlines && stated.deadline != kNever) gang.deadline = (stated.deadline - view.now()).value;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      const bool runs = view.usable(job, type) && stated.gpus <= view.working(type);
      gang.durations.push_back(runs ? std::min(view.predicted_remaining(job, type).value, kLongestPlayed) : kCannotRun);
    }
    problem.jobs.push_back(std::move(gang));
  }
  problem.free = view.all_free();
  for (const Running& run : view.running()) {
    const int64_t until = std::clamp<int64_t>((run.predicted_end - view.now()).value, 1, kLongestPlayed);
    problem.busy.push_back({until, static_cast<int32_t>(run.type), run.gpus});
  }
  return problem;
}

// 0, 1, 2, ... by what key() says of them; ties: the lower.
template <class Key>
std::vector<int> order_by(size_t count, const Key& key) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return key(static_cast<size_t>(a)) < key(static_cast<size_t>(b)); });
  return order;
}

}  // namespace

bool PlannedQueues::any_gang(const ClusterView& view, const std::vector<JobIndex>& jobs) {
  return std::any_of(jobs.begin(), jobs.end(), [&](JobIndex job) { return view.job(job).gpus > 1; });
}

std::vector<QueuePlace> PlannedQueues::with_gangs(const ClusterView& view, const std::vector<JobIndex>& jobs,
                                                  const std::vector<QueuePlace>& places, bool deadlines) {
  std::vector<int> types;
  for (const QueuePlace& place : places) types.push_back(place.kind);
  const auto planned = order_by(jobs.size(), [&](size_t i) { return places[i].start; });
  const auto shortest = order_by(jobs.size(), [&](size_t i) { return view.predicted_fastest(jobs[i]); });
  std::vector<GangOrder> orders = {{planned, types, false},
                                   {planned, types, true},
                                   {planned, {}, true},
                                   {shortest, {}, false},
                                   {shortest, {}, true}};
  if (deadlines) {
    const auto urgent = order_by(jobs.size(), [&](size_t i) { return view.job(jobs[i]).deadline; });
    orders.push_back({urgent, {}, false});
    orders.push_back({urgent, {}, true});
  }
  return best_playout(gang_problem(view, jobs, deadlines), orders, kMostPlayouts).places;
}

void PlannedQueues::begin(const ClusterView& view) {
  in_order_.resize(view.types());
  working_.resize(view.types());
}

void PlannedQueues::arrived(const ClusterView& /*view*/, JobIndex job) {
  waiting_.push_back(job);
  ++arrived_since_plan_;
  off_plan_ = true;
}

void PlannedQueues::finished(const ClusterView& view, JobIndex job) {
  if (view.now() != planned_end_[job]) off_plan_ = true;
}

std::vector<JobIndex> PlannedQueues::candidates(const ClusterView& /*view*/, int round) {
  return round == 0 ? waiting_ : std::vector<JobIndex>{};
}

void PlannedQueues::make_plan(const ClusterView& view, const std::vector<JobIndex>& jobs) {
  QueueProblem problem;
  problem.free_at = free_times(view);
  std::vector<JobIndex> planned;
  for (const JobIndex job : jobs) {
    std::vector<int64_t> durations(view.types(), kCannotRun);
    bool runs = false;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      // While failures leave a type too small for the job, it waits or goes elsewhere.
      if (!view.usable(job, type) || view.job(job).gpus > view.working(type)) continue;
      durations[type] = gpu_time(view.predicted_remaining(job, type), view.job(job).gpus);
      runs = true;
    }
    if (!runs) continue;
    planned.push_back(job);
    problem.durations.push_back(std::move(durations));
  }
  coarser_ = halvings_needed(problem);
  for (auto& times : problem.free_at) halve(times, coarser_);
  for (auto& times : problem.durations) halve(times, coarser_);
  const std::vector<QueuePlace> places = plan(view, planned, problem);
  for (TypeIndex type = 0; type < view.types(); ++type) {
    std::vector<std::tuple<int64_t, Time, JobIndex>> starts;  // of those that are to start at once the urgent first
    for (size_t i = 0; i < planned.size(); ++i) {
      if (static_cast<TypeIndex>(places[i].kind) != type) continue;
      starts.emplace_back(places[i].start, view.job(planned[i]).deadline, planned[i]);
    }
    std::sort(starts.begin(), starts.end(), std::greater<>());
    in_order_[type].clear();
    for (const auto& entry : starts) in_order_[type].push_back(std::get<JobIndex>(entry));
    working_[type] = view.working(type);
  }
  arrived_since_plan_ = 0;
  off_plan_ = false;
}

void PlannedQueues::start_what_fits(Scheduler& scheduler) {
  bool any = false;
  for (TypeIndex type = 0; type < scheduler.types(); ++type) {
    auto& line = in_order_[type];
    while (!line.empty() && scheduler.fits(line.back(), type)) {
      const JobIndex job = line.back();
      line.pop_back();
      scheduler.start(job, type);
      if (planned_end_.size() <= job) planned_end_.resize(job + 1);
      planned_end_[job] = scheduler.running(job).predicted_end;
      any = true;
    }
  }
  if (any) std::erase_if(waiting_, [&](JobIndex job) { return scheduler.is_running(job); });
}

void PlannedQueues::schedule(Scheduler& scheduler) {
  for (TypeIndex type = 0; type < scheduler.types(); ++type) off_plan_ |= working_[type] != scheduler.working(type);
  if (!off_plan_ && !always_replans()) {
    start_what_fits(scheduler);
    return;
  }
  for (int round = 0; !waiting_.empty(); ++round) {
    const std::vector<JobIndex> jobs = candidates(scheduler, round);
    if (jobs.empty()) return;
    make_plan(scheduler, jobs);
    start_what_fits(scheduler);
  }
}

}  // namespace forerun::cluster
