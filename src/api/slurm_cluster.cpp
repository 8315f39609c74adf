#include "api/slurm_cluster.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <thread>

#include "cluster/policies.h"
#include "cluster/simulator.h"
#include "cluster/sources/csv_rows.h"

namespace forerun {
namespace {

double wall_seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string shell_quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The value of " KEY=" in a line of scontrol; values end at the next blank.
std::string scontrol_field(const std::string& line, const std::string& key) {
  size_t begin = line.starts_with(key + "=") ? 0 : line.find(" " + key + "=");
  if (begin == std::string::npos) return "";
  begin = line.find('=', begin) + 1;
  return line.substr(begin, line.find(' ', begin) - begin);
}

int64_t integer_or_zero(const std::string& text) { return cluster::parse_integer(text).value_or(0); }

// "[days-]hours:minutes:seconds"; 0 for "UNLIMITED".
int64_t span_seconds(std::string text) {
  int64_t days = 0;
  if (const size_t dash = text.find('-'); dash != std::string::npos) {
    days = integer_or_zero(text.substr(0, dash));
    text.erase(0, dash + 1);
  }
  int64_t total = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ':');) total = total * 60 + integer_or_zero(part);
  return days * 86400 + total;
}

std::vector<std::string> submission(const cluster::Workload& workload, cluster::JobIndex job,
                                    const SlurmReplayOptions& options) {
  const std::string name = workload.name_of(job);
  const double duration = cluster::seconds(workload.truth.fastest(job)) / options.speed;
  std::vector<std::string> command = {
      "sbatch",          "--parsable", "--job-name", name,
      "--output",        "/dev/null",  "--ntasks",   std::to_string(workload.jobs[job].gpus),
      "--gpus-per-task", "1"};
  if (!options.partition.empty()) command.insert(command.end(), {"--partition", options.partition});
  if (const auto limit = options.limits.find(name); limit != options.limits.end()) {
    command.insert(command.end(), {"--time", std::to_string(limit->second.limit_minutes), "--priority",
                                   std::to_string(limit->second.priority)});
  }
  command.insert(command.end(), {"--wrap", fmt::format("sleep {:.3f}", duration)});
  return command;
}

void simulate_beside(const cluster::Workload& workload, const SlurmReplayOptions& options, Replay& replay,
                     cluster::Policy& policy) {
  const cluster::Schedule schedule = cluster::simulate(workload, options.cluster, workload.truth, policy);
  for (size_t job = 0; job < replay.jobs.size(); ++job) {
    if (schedule.start[job] != cluster::kNever)
      replay.jobs[job].simulated_start = cluster::seconds(schedule.start[job]);
  }
  replay.policy = options.policy;
  compare_starts(replay);
}

class Replayer {
 public:
  Replayer(const cluster::Workload& workload, const SlurmReplayOptions& options)
      : workload_(workload), options_(options) {}

  Status submit() {
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    for (cluster::JobIndex job = 0; job < workload_.jobs.size(); ++job) {
      const double due = cluster::seconds(workload_.jobs[job].arrival) / options_.speed;
      while (wall_seconds_since(begin) < due) {
        std::this_thread::sleep_for(
            std::chrono::duration<double>(std::min(due - wall_seconds_since(begin), options_.poll)));
      }
      const Result<std::string> answer = options_.run(submission(workload_, job, options_));
      if (!answer) return answer.error().within("job " + workload_.name_of(job));
      const int64_t id = integer_or_zero(answer->substr(0, answer->find_first_of(";\n")));
      if (id <= 0) return Error{"sbatch gave no job id: " + *answer, "job " + workload_.name_of(job), ""};
      job_of_[id] = job;
      if (options_.progress) options_.progress(job + 1, 0);
    }
    return {};
  }

  // Waits until all are over.
  Result<std::vector<SlurmJob>> wait() {
    std::vector<SlurmJob> own(workload_.jobs.size());
    size_t over_before = 0;
    std::chrono::steady_clock::time_point changed = std::chrono::steady_clock::now();
    while (true) {
      const Result<std::vector<SlurmJob>> all = show_jobs(options_.run);
      if (!all) return all.error();
      for (const SlurmJob& job : *all) {
        if (const auto known = job_of_.find(job.id); known != job_of_.end()) own[known->second] = job;
      }
      const auto over =
          static_cast<size_t>(std::count_if(own.begin(), own.end(), [](auto& job) { return job.over(); }));
      if (options_.progress) options_.progress(own.size(), over);
      if (over == own.size()) return own;
      const bool some_run = std::any_of(own.begin(), own.end(), [](auto& job) { return job.state == "RUNNING"; });
      if (over != over_before || some_run) changed = std::chrono::steady_clock::now();
      over_before = over;
      if (wall_seconds_since(changed) > kPatience) {
        const auto stuck = std::find_if(own.begin(), own.end(), [](auto& job) { return !job.over(); });
        return Error{"the job does not start", "Slurm job " + std::to_string(stuck->id),
                     "ask `scontrol show job` for the reason; it may want more GPUs than there are"};
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(options_.poll));
    }
  }

 private:
  static constexpr double kPatience = 60;  // seconds
  const cluster::Workload& workload_;
  const SlurmReplayOptions& options_;
  std::map<int64_t, cluster::JobIndex> job_of_;  // by Slurm's id
};

}  // namespace

Result<std::string> run_command(const std::vector<std::string>& command) {
  std::string line = "SLURM_TIME_FORMAT=%s";
  for (const std::string& word : command) line += " " + shell_quoted(word);
  FILE* pipe = popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return Error{"cannot run a command", command.front(), ""};
  std::string output;
  std::array<char, 4096> buffer{};
  for (size_t got = 0; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), got);
  const int status = pclose(pipe);
  if (status == 0) return output;
  while (output.ends_with('\n')) output.pop_back();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    return Error{"is not there", command.front(), "install slurm-wlm (or slurm-client), and set SLURM_CONF"};
  }
  return Error{output.empty() ? "failed" : output, command.front(), ""};
}

bool SlurmJob::over() const {
  static const std::vector<std::string> running = {"",           "PENDING",   "RUNNING", "CONFIGURING",
                                                   "COMPLETING", "SUSPENDED", "REQUEUED"};
  return std::find(running.begin(), running.end(), state) == running.end();
}

std::vector<SlurmJob> parse_jobs(const std::string& text) {
  std::vector<SlurmJob> jobs;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    SlurmJob job;
    job.id = integer_or_zero(scontrol_field(line, "JobId"));
    if (job.id == 0) continue;
    job.name = scontrol_field(line, "JobName");
    job.state = scontrol_field(line, "JobState");
    job.submit = integer_or_zero(scontrol_field(line, "SubmitTime"));
    job.start = integer_or_zero(scontrol_field(line, "StartTime"));
    job.end = integer_or_zero(scontrol_field(line, "EndTime"));
    job.run_seconds = span_seconds(scontrol_field(line, "RunTime"));
    job.limit_seconds = span_seconds(scontrol_field(line, "TimeLimit"));
    const std::string note = "hard limit ";
    if (const size_t hard = line.find(note); hard != std::string::npos) {
      const size_t begin = hard + note.size();
      job.hard_limit_min = integer_or_zero(line.substr(begin, line.find(' ', begin) - begin));
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Result<std::vector<SlurmJob>> show_jobs(const CommandRunner& run) {
  const Result<std::string> text = run({"scontrol", "-o", "show", "job"});
  if (!text) return text.error();
  return parse_jobs(*text);
}

Result<Replay> replay_on_slurm(const cluster::Workload& workload, const SlurmReplayOptions& options) {
  Replay replay;
  replay.speed = options.speed;
  std::unique_ptr<cluster::Policy> policy;
  if (!options.policy.empty()) {
    auto made = cluster::make_policy(options.policy);
    if (!made) return made.error();
    policy = std::move(*made);
  }
  Replayer replayer(workload, options);
  if (const Status status = replayer.submit(); !status) return status.error();
  const Result<std::vector<SlurmJob>> ended = replayer.wait();
  if (!ended) return ended.error();
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const SlurmJob& job : *ended) first = std::min(first, job.submit);
  for (size_t i = 0; i < ended->size(); ++i) {
    const SlurmJob& job = (*ended)[i];
    const auto relative = [&](int64_t time) { return static_cast<double>(time - first) * options.speed; };
    replay.jobs.push_back({workload.name_of(static_cast<cluster::JobIndex>(i)),
                           job.id,
                           job.state,
                           workload.jobs[i].gpus,
                           relative(job.submit),
                           relative(job.start),
                           relative(job.end),
                           {}});
  }
  if (policy) simulate_beside(workload, options, replay, *policy);
  return replay;
}

Result<std::vector<SlurmJob>> extend_limits(double within, double step, const CommandRunner& run) {
  const Result<std::vector<SlurmJob>> jobs = show_jobs(run);
  if (!jobs) return jobs.error();
  std::vector<SlurmJob> raised;
  for (SlurmJob job : *jobs) {
    const int64_t hard = job.hard_limit_min * 60;
    if (job.state != "RUNNING" || job.limit_seconds == 0 || job.limit_seconds >= hard) continue;
    if (static_cast<double>(job.limit_seconds - job.run_seconds) >= within) continue;
    const auto wanted = static_cast<int64_t>(std::ceil(static_cast<double>(job.limit_seconds) * (1 + step) / 60));
    const int64_t minutes = std::min(std::max(wanted, job.limit_seconds / 60 + 1), job.hard_limit_min);
    const Result<std::string> done =
        run({"scontrol", "update", fmt::format("JobId={}", job.id), fmt::format("TimeLimit={}", minutes)});
    if (!done) return done.error().within("Slurm job " + std::to_string(job.id));
    job.limit_seconds = minutes * 60;
    raised.push_back(std::move(job));
  }
  return raised;
}

}  // namespace forerun
