// What became of every job, as a table.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/csv_cells.h"
#include "report/schedule.h"

namespace forerun {
namespace {

using cluster::JobIndex;
using cluster::kNever;
using cluster::Time;

constexpr const char* kJobsHeading =
    "policy,id,user,group,model,gpus,gpu_type,submit,start,end,wait,run,jct,preemptions,failures,predicted,duration,"
    "slowdown,deadline,late_by,finished\n";
constexpr size_t kPieceBytes = size_t{1} << 16;

// Seconds to the nanosecond, without zeros behind; nothing where the time never comes.
std::string exact_seconds(Time time) {
  if (time == kNever) return "";
  std::string text = fmt::format("{}{}.{:09}", time.value < 0 ? "-" : "", std::abs(time.value / cluster::kSecond.value),
                                 std::abs(time.value % cluster::kSecond.value));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string name_at(const std::vector<std::string>& names, int32_t index) {
  return index < 0 ? "" : csv_cell(names[static_cast<size_t>(index)]);
}

// By job: the type it last ran on, or kNoType.
std::vector<cluster::TypeIndex> last_types(const cluster::Schedule& schedule, size_t jobs) {
  std::vector<cluster::TypeIndex> types(jobs, cluster::kNoType);
  for (const cluster::Segment& segment : schedule.segments) types[segment.job] = segment.type;
  return types;
}

// One policy's rows.
class JobRows {
 public:
  JobRows(const ScheduleAnswer& answer, const PolicyOutcome& outcome)
      : answer_(answer),
        workload_(answer.workload),
        schedule_(outcome.first),
        policy_(csv_cell(outcome.policy)),
        types_(last_types(outcome.first, answer.workload.jobs.size())) {}

  [[nodiscard]] std::string row(JobIndex index) const {
    const cluster::Job& job = workload_.jobs[index];
    const bool finished = schedule_.finish[index] != kNever;
    const bool ran = types_[index] != cluster::kNoType;
    const bool due = job.deadline != kNever && finished;
    return fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", policy_, csv_cell(workload_.name_of(index)),
        name_at(workload_.users, job.user), name_at(workload_.virtual_clusters, job.virtual_cluster),
        name_at(workload_.kinds, job.kind), job.gpus, ran ? csv_cell(answer_.cluster.pools[types_[index]].type) : "",
        exact_seconds(job.arrival), exact_seconds(schedule_.start[index]), exact_seconds(schedule_.finish[index]),
        exact_seconds(finished ? waiting_time(schedule_, workload_, index) : kNever),
        exact_seconds(schedule_.held[index]),
        exact_seconds(finished ? completion_time(schedule_, workload_, index) : kNever),
        schedule_.stops[index].preemptions, schedule_.stops[index].failures,
        exact_seconds(duration(answer_.predicted, index)), exact_seconds(duration(workload_.truth, index)),
        finished ? fmt::format("{:.6g}", slowdown(schedule_, workload_, index)) : "", exact_seconds(job.deadline),
        due ? exact_seconds(std::max(schedule_.finish[index] - job.deadline, Time(0))) : "", finished ? "yes" : "no");
  }

 private:
  // On the type the job ran on; where it never did, on its fastest.
  [[nodiscard]] Time duration(const cluster::Durations& durations, JobIndex job) const {
    return types_[job] == cluster::kNoType ? durations.fastest(job) : durations.of(job, types_[job]);
  }

  const ScheduleAnswer& answer_;
  const cluster::Workload& workload_;
  const cluster::Schedule& schedule_;
  std::string policy_;
  std::vector<cluster::TypeIndex> types_;
};

}  // namespace

Status write_jobs_csv(const ScheduleAnswer& answer, const std::function<Status(std::string_view)>& write) {
  std::string piece = kJobsHeading;
  for (const PolicyOutcome& outcome : answer.report.outcomes) {
    const JobRows rows(answer, outcome);
    for (JobIndex job = 0; job < answer.workload.jobs.size(); ++job) {
      piece += rows.row(job);
      if (piece.size() < kPieceBytes) continue;
      if (Status status = write(piece); !status) return status;
      piece.clear();
    }
  }
  return write(piece);
}

}  // namespace forerun
