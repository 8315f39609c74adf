#include "slurm/slurm_cluster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <set>

#include "cluster/policies.h"
#include "cluster/simulator.h"
#include "cluster/sources/cell_values.h"
#include "slurm/slurm_watch.h"

namespace forerun {
namespace {

using ReplayClock = std::chrono::steady_clock;

double wall_seconds_since(ReplayClock::time_point begin) {
  return std::chrono::duration<double>(ReplayClock::now() - begin).count();
}

std::vector<std::string> submission(const cluster::Workload& workload, cluster::JobIndex job, const std::string& mark,
                                    const SlurmReplayOptions& options) {
  const std::string name = workload.name_of(job);
  const double duration = cluster::seconds(workload.truth.fastest(job)) / options.speed;
  // Joined by '=', a name that starts with a dash is no option.
  std::vector<std::string> command = {"sbatch",
                                      "--parsable",
                                      "--job-name=" + name,
                                      "--comment=" + mark,
                                      "--output=/dev/null",
                                      "--ntasks=" + std::to_string(workload.jobs[job].gpus),
                                      "--gpus-per-task=1"};
  if (!options.partition.empty()) command.push_back("--partition=" + options.partition);
  if (const auto limit = options.limits.find(name); limit != options.limits.end()) {
    command.push_back(fmt::format("--time={}", limit->second.limit_minutes));
    command.push_back(fmt::format("--priority={}", limit->second.priority));
  }
  command.push_back(fmt::format("--wrap=sleep {:.3f}", duration));
  return command;
}

void simulate_beside(const cluster::Workload& workload, const SlurmReplayOptions& options, Replay& replay,
                     const cluster::PolicySpec& policy) {
  const cluster::Schedule schedule =
      cluster::simulate(workload, options.cluster, workload.truth, *cluster::make_policy(policy));
  for (size_t job = 0; job < replay.jobs.size(); ++job) {
    if (schedule.start[job] != cluster::kNever)
      replay.jobs[job].simulated_start = cluster::seconds(schedule.start[job]);
  }
  replay.policy = policy.text;
  compare_starts(replay);
}

class Replayer {
 public:
  Replayer(const cluster::Workload& workload, const SlurmReplayOptions& options, const WorkControl& control)
      : workload_(workload),
        options_(options),
        control_(control),
        work_(control),
        token_(fmt::format("forerun-replay:{}-{}:", std::chrono::system_clock::now().time_since_epoch().count(),
                           getpid())),
        own_(workload.jobs.size()),
        ran_(workload.jobs.size()) {}

  // Jobs on the cluster that are not of this replay.
  Result<size_t> others() {
    const Result<std::vector<SlurmJob>> all = asked([&] { return show_jobs(options_.run); });
    if (!all) return all.error();
    return static_cast<size_t>(std::count_if(all->begin(), all->end(), [](auto& job) { return !job.over(); }));
  }

  Status submit() {
    work_.begin("jobs submitted", static_cast<int64_t>(workload_.jobs.size()));
    const ReplayClock::time_point begin = ReplayClock::now();
    for (cluster::JobIndex job = 0; job < workload_.jobs.size(); ++job) {
      const double due = cluster::seconds(workload_.jobs[job].arrival) / options_.speed;
      pause_unless(due - wall_seconds_since(begin), control_.stop);
      if (Status status = work_.check(); !status) return status;
      const Result<int64_t> id = submit_one(job);
      if (!id) return id.error().within("job " + workload_.name_of(job));
      own_[job].id = *id;
      own_[job].state = "PENDING";
      job_of_[*id] = job;
      (void)work_.advance();
    }
    return {};
  }

  // Waits until all are over.
  Status wait() {
    size_t over_before = 0;
    work_.begin("jobs over", static_cast<int64_t>(own_.size()));
    ReplayClock::time_point changed = ReplayClock::now();
    while (true) {
      if (Status status = work_.check(); !status) return status;
      const double away_before = away_;
      if (const Status seen = look(); !seen) return seen.error();
      const auto over =
          static_cast<size_t>(std::count_if(own_.begin(), own_.end(), [](auto& job) { return job.over(); }));
      (void)work_.advance(static_cast<int64_t>(over) - static_cast<int64_t>(over_before));
      if (over == own_.size()) return {};
      const bool some_run = std::any_of(own_.begin(), own_.end(), [](auto& job) { return job.state == "RUNNING"; });
      if (over != over_before || some_run || away_ != away_before) changed = ReplayClock::now();
      over_before = over;
      if (wall_seconds_since(changed) > kPatience) {
        const auto stuck = std::find_if(own_.begin(), own_.end(), [](auto& job) { return !job.over(); });
        return Error{"the job does not start", "Slurm job " + std::to_string(stuck->id),
                     "ask `scontrol show job` for the reason; it may want more GPUs than there are"};
      }
      pause_unless(options_.poll, control_.stop);
    }
  }

  // Ends what is not over, by its ids; gives how many were.
  size_t cancel() {
    cancelling_ = true;
    if (const Status seen = look(); !seen) return 0;
    std::vector<std::string> command = {"scancel"};
    for (const SlurmJob& job : own_) {
      if (job.id > 0 && !job.over()) command.push_back(std::to_string(job.id));
    }
    if (command.size() == 1) return 0;
    // One that ended in the meantime is no fault.
    const auto done = asked([&] { return options_.run(command); });
    if (!done && unreachable(done.error())) return 0;
    (void)look();
    return command.size() - 1;
  }

  [[nodiscard]] const std::vector<SlurmJob>& jobs() const { return own_; }

  // The start of a job that waits is an expectation, that of one cancelled while it waited its end.
  [[nodiscard]] bool has_started(size_t index) const {
    const SlurmJob& job = own_[index];
    if (job.start <= 0 || job.state == "PENDING" || job.state == "REQUEUED") return false;
    return ran_[index] || !job.state.starts_with("CANCELLED") || job.end > job.start;
  }

  [[nodiscard]] double away() const { return away_; }

 private:
  // Asks again while the controller is away.
  template <class Ask>
  auto asked(const Ask& ask) -> decltype(ask()) {
    const ReplayClock::time_point begin = ReplayClock::now();
    const double patience = cancelling_ ? std::min(options_.away, kCancelPatience) : options_.away;
    for (double again_in = 1;; again_in = std::min(2 * again_in, kLongestPause)) {
      auto answer = ask();
      if (answer || !unreachable(answer.error())) {
        if (again_in > 1) is_back(wall_seconds_since(begin));
        return answer;
      }
      if (!cancelling_) {
        if (const Status status = work_.check(); !status) return status.error();
      }
      if (wall_seconds_since(begin) > patience) return answer;
      if (options_.trouble) options_.trouble(answer.error(), again_in);
      pause_unless(again_in, cancelling_ ? std::stop_token() : control_.stop);
    }
  }

  void is_back(double seconds) {
    away_ += seconds;
    if (options_.back) options_.back(seconds);
  }

  std::string mark_of(cluster::JobIndex job) const { return token_ + std::to_string(job); }

  // A submission that was cut off may have been taken all the same: its mark is looked for before it is tried again.
  Result<int64_t> submit_one(cluster::JobIndex job) {
    const std::vector<std::string> command = submission(workload_, job, mark_of(job), options_);
    bool cut_off = false;
    return asked([&]() -> Result<int64_t> {
      if (cut_off) {
        const Result<std::vector<SlurmJob>> all = show_jobs(options_.run);
        if (!all) return all.error();
        for (const SlurmJob& other : *all) {
          if (is_own(other) && other.comment == mark_of(job)) return other.id;
        }
      }
      const Result<std::string> answer = options_.run(command);
      cut_off = !answer;
      if (!answer) return answer.error();
      const auto id = cluster::parse_integer(answer->substr(0, answer->find_first_of(";\n")));
      if (!id || *id <= 0) return Error{"sbatch gave no job id: " + *answer, "", ""};
      return *id;
    });
  }

  // Others can write the same comment, but not as this user.
  static bool is_own(const SlurmJob& job) { return job.user < 0 || job.user == static_cast<int64_t>(geteuid()); }

  Status look() {
    const Result<std::vector<SlurmJob>> all = asked([&] { return show_jobs(options_.run); });
    if (!all) return all.error();
    std::set<int64_t> listed;
    for (const SlurmJob& job : *all) {
      listed.insert(job.id);
      const auto known = job_of_.find(job.id);
      if (known == job_of_.end()) continue;
      own_[known->second] = job;
      if (job.state == "RUNNING") ran_[known->second] = true;
    }
    // A controller that was away for long, or that lost its state, has forgotten the job.
    for (SlurmJob& job : own_) {
      if (job.id > 0 && !job.over() && !listed.contains(job.id)) job.state = "LOST";
    }
    return {};
  }

  static constexpr double kPatience = 60;        // seconds
  static constexpr double kCancelPatience = 30;  // seconds
  static constexpr double kLongestPause = 8;     // seconds
  const cluster::Workload& workload_;
  const SlurmReplayOptions& options_;
  const WorkControl& control_;
  Work work_;
  std::string token_;  // begins the comment of each job
  std::vector<SlurmJob> own_;
  std::vector<bool> ran_;                        // seen to run
  std::map<int64_t, cluster::JobIndex> job_of_;  // by Slurm's id
  double away_ = 0;                              // seconds
  bool cancelling_ = false;
};

void add_jobs(const cluster::Workload& workload, const Replayer& replayer, Replay& replay) {
  const std::vector<SlurmJob>& jobs = replayer.jobs();
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const SlurmJob& job : jobs) {
    if (job.submit > 0) first = std::min(first, job.submit);
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const SlurmJob& job = jobs[i];
    const auto relative = [&](int64_t time) { return static_cast<double>(time - first) * replay.speed; };
    ReplayedJob row;
    row.job = workload.name_of(static_cast<cluster::JobIndex>(i));
    row.slurm_id = job.id;
    row.state = job.id > 0 ? job.state : "UNSUBMITTED";
    row.gpus = workload.jobs[i].gpus;
    if (job.submit > 0) row.submit = relative(job.submit);
    if (replayer.has_started(i)) row.start = relative(job.start);
    if (row.start && job.over() && job.state != "LOST") row.end = relative(job.end);
    replay.jobs.push_back(std::move(row));
  }
}

}  // namespace

Result<Replay> replay_on_slurm(const cluster::Workload& workload, const SlurmReplayOptions& options,
                               const WorkControl& control) {
  if (options.policy && !options.policy->file.empty()) {
    return Error{"a replay is simulated beside built-in policies only", "--policy " + options.policy->text,
                 "name one of those that `forerun schedule --list` lists"};
  }
  if (!workload.after.empty() || !workload.arrays.empty()) {
    return Error{"jobs that run after others and arrays are not replayed", "", "take the columns after and array out"};
  }
  Replay replay;
  replay.speed = options.speed;
  Replayer replayer(workload, options, control);
  const Result<size_t> others = replayer.others();
  if (!others) return others.error();
  replay.other_jobs = *others;
  Status status = replayer.submit();
  const bool some = std::any_of(replayer.jobs().begin(), replayer.jobs().end(), [](auto& job) { return job.id > 0; });
  if (!status && !some) return status.error();
  if (status) status = replayer.wait();
  if (!status) {
    replay.fault = status.error().message();
    replay.cancelled = replayer.cancel();
  }
  replay.away = replayer.away();
  add_jobs(workload, replayer, replay);
  if (options.policy) simulate_beside(workload, options, replay, *options.policy);
  return replay;
}

void compare_starts(Replay& replay) {
  replay.pairs = replay.pairs_alike = 0;
  for (size_t i = 0; i < replay.jobs.size(); ++i) {
    for (size_t k = i + 1; k < replay.jobs.size(); ++k) {
      const ReplayedJob& a = replay.jobs[i];
      const ReplayedJob& b = replay.jobs[k];
      if (!a.simulated_start || !b.simulated_start || !a.start || !b.start) continue;
      const double real = *a.start - *b.start;
      const double simulated = *a.simulated_start - *b.simulated_start;
      if (real == 0 || simulated == 0) continue;
      ++replay.pairs;
      if ((real < 0) == (simulated < 0)) ++replay.pairs_alike;
    }
  }
}

}  // namespace forerun
