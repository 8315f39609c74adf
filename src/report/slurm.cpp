#include "report/slurm.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"

#include "base/csv_cells.h"

namespace forerun {
namespace {

constexpr int64_t kMebi = 1024 * 1024;

int64_t whole_mebibytes(Bytes bytes) { return (bytes.value + kMebi - 1) / kMebi; }

// A time that may be missing, with so many decimals.
std::string time_cell(const std::optional<double>& seconds, int decimals) {
  return seconds ? fmt::format("{:.{}f}", *seconds, decimals) : "";
}

std::optional<double> wait_of(const ReplayedJob& job) {
  if (!job.submit || !job.start) return {};
  return *job.start - *job.submit;
}

}  // namespace

// Job names are keys that job_submit.lua and read_limits look up, so they are quoted and otherwise as they are.
std::string limits_csv(const std::vector<JobLimit>& limits) {
  std::string text = "job,seconds,time_limit_min,memory_mib,priority,fits\n";
  for (const JobLimit& limit : limits) {
    text += fmt::format("{},{:.1f},{},{},{},{}\n", csv_quoted(limit.job), limit.seconds, limit.limit_minutes,
                        whole_mebibytes(limit.memory), limit.priority, limit.fits ? "yes" : "no");
  }
  return text;
}

std::string limits_json(const std::vector<JobLimit>& limits) {
  std::string text;
  for (const JobLimit& limit : limits) {
    JsonWriter json;
    json.begin_object()
        .field("schema", "forerun.slurm.limits/1")
        .field("job", limit.job)
        .field("seconds", limit.seconds)
        .field("time_limit_min", limit.limit_minutes)
        .field("memory_mib", whole_mebibytes(limit.memory))
        .field("priority", limit.priority)
        .field("fits", limit.fits);
    if (limit.step.value > 0) json.field("gpu", limit.gpu).field("step_ms", milliseconds(limit.step));
    if (!limit.calibration.empty()) json.field("calibration", limit.calibration);
    text += json.end_object().take() + "\n";
  }
  return text;
}

std::string replay_csv(const Replay& replay) {
  std::string text = "job,slurm_id,state,gpus,submit,start,end,wait,simulated_start\n";
  for (const ReplayedJob& job : replay.jobs) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_cell(job.job), job.slurm_id, job.state, job.gpus,
                        time_cell(job.submit, 3), time_cell(job.start, 3), time_cell(job.end, 3),
                        time_cell(wait_of(job), 3), time_cell(job.simulated_start, 3));
  }
  return text;
}

std::string replay_json(const Replay& replay) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.slurm.replay/1")
      .field("speed", replay.speed)
      .field("complete", replay.fault.empty())
      .field("other_jobs", replay.other_jobs)
      .field("away_seconds", replay.away)
      .key("jobs")
      .begin_array();
  for (const ReplayedJob& job : replay.jobs) {
    json.begin_object()
        .field("job", job.job)
        .field("slurm_id", job.slurm_id)
        .field("state", job.state)
        .field("gpus", job.gpus);
    if (job.submit) json.field("submit", *job.submit);
    if (job.start) json.field("start", *job.start);
    if (job.end) json.field("end", *job.end);
    if (job.simulated_start) json.field("simulated_start", *job.simulated_start);
    json.end_object();
  }
  json.end_array();
  if (!replay.fault.empty()) json.field("fault", replay.fault).field("cancelled", replay.cancelled);
  if (!replay.policy.empty()) {
    json.field("policy", replay.policy).field("pairs", replay.pairs).field("pairs_alike", replay.pairs_alike);
  }
  return json.end_object().take() + "\n";
}

std::string replay_text(const Replay& replay) {
  double jct = 0;
  double wait = 0;
  size_t ended = 0;
  std::string text = fmt::format("{:<20} {:>9} {:<11} {:>5} {:>11} {:>11} {:>11} {:>11}\n", "job", "slurm id", "state",
                                 "GPUs", "submit s", "start s", "end s", "simulated s");
  for (const ReplayedJob& job : replay.jobs) {
    text += fmt::format("{:<20} {:>9} {:<11} {:>5} {:>11} {:>11} {:>11} {:>11}\n", job.job, job.slurm_id, job.state,
                        job.gpus, time_cell(job.submit, 1), time_cell(job.start, 1), time_cell(job.end, 1),
                        time_cell(job.simulated_start, 1));
    if (!job.submit || !job.start || !job.end) continue;
    jct += *job.end - *job.submit;
    wait += *job.start - *job.submit;
    ++ended;
  }
  const double count = std::max<double>(static_cast<double>(ended), 1);
  text += fmt::format("{}{} jobs, mean completion {:.1f} s, mean wait {:.1f} s\n", ended,
                      ended < replay.jobs.size() ? fmt::format(" of {}", replay.jobs.size()) : "", jct / count,
                      wait / count);
  if (!replay.policy.empty()) {
    text += fmt::format("starts in the same order as simulated under {}: {} of {} pairs\n", replay.policy,
                        replay.pairs_alike, replay.pairs);
  }
  return text;
}

}  // namespace forerun
