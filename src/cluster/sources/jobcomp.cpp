// Slurm's log of completed jobs, as the plugin jobcomp/filetxt writes it, a line for each job:
//
//   JobId=812 UserId=ann(1001) GroupId=ann(1001) Name=my job JobState=COMPLETED Partition=gpu TimeLimit=60
//   StartTime=2024-03-01T10:05:00 EndTime=2024-03-01T11:05:00 NodeList=node0 NodeCnt=1 ProcCnt=8 WorkDir=/home/ann
//   ReservationName= Tres=cpu=8,mem=64G,node=1,billing=8,gres/gpu=2 Account= ... SubmitTime=2024-03-01T10:00:00 ...
//
// (one line in the file). Values may hold blanks: a value ends before the next word that is a capital letter, letters and
// '='. GPUs stand in Tres where slurm.conf has AccountingStorageTRES=gres/gpu; without any the file cannot be used. Jobs
// without GPUs and those that never ran are passed over. All columns are real; the time limit (minutes), the user's guess, is
// kept beside the duration.
#include <fmt/format.h>

#include <cctype>
#include <map>

#include "cluster/sources/cell_values.h"
#include "cluster/sources/slurm_gpus.h"
#include "cluster/sources/sources.h"

namespace forerun::cluster {
namespace {

constexpr const char* kJobcompRemedy = "correct the line, or pass --lenient to leave such lines out";

using JobcompFields = std::map<std::string, std::string, std::less<>>;

// Whether a key begins at `at`: "StartTime=".
bool is_key(std::string_view line, size_t at) {
  if (at >= line.size() || std::isupper(static_cast<unsigned char>(line[at])) == 0) return false;
  size_t end = at;
  while (end < line.size() && std::isalpha(static_cast<unsigned char>(line[end])) != 0) ++end;
  return end < line.size() && line[end] == '=' && end > at + 2;
}

JobcompFields split_fields(std::string_view line) {
  JobcompFields fields;
  for (size_t begin = 0; begin < line.size();) {
    if (!is_key(line, begin)) {
      ++begin;
      continue;
    }
    const size_t equals = line.find('=', begin);
    size_t end = equals + 1;
    while (end < line.size() && !(line[end] == ' ' && (end + 1 == line.size() || is_key(line, end + 1)))) ++end;
    fields.try_emplace(std::string(line.substr(begin, equals - begin)), line.substr(equals + 1, end - equals - 1));
    begin = end + 1;
  }
  return fields;
}

std::string field(const JobcompFields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() || found->second == "(null)" ? "" : found->second;
}

Status add_jobcomp_line(std::string_view text, int64_t line, JobCollector& jobs, bool& any_gpus) {
  const JobcompFields fields = split_fields(text);
  const std::string id = field(fields, "JobId");
  const auto submit = parse_date(field(fields, "SubmitTime"));
  const auto start = parse_date(field(fields, "StartTime"));
  const auto end = parse_date(field(fields, "EndTime"));
  const std::string tres = field(fields, "Tres");
  const auto gpus = parse_slurm_gpus(tres.empty() ? field(fields, "Gres") : tres);
  if (id.empty() || !submit || !end || !gpus) {
    return jobs.reject(Fault::malformed, line, "no job: its id, submission, end or GPUs cannot be read",
                       kJobcompRemedy);
  }
  any_gpus = any_gpus || gpus->count > 0;
  if (gpus->count == 0 || !start || *start == *end || field(fields, "NodeCnt") == "0") {
    jobs.pass_over();
    return {};
  }
  if (!has_slurm_type(jobs.options().cluster, *gpus)) {
    return jobs.reject(Fault::unknown_gpu_type, line,
                       fmt::format("job '{}' asks for GPUs of type {}, which the cluster has not", id, gpus->type),
                       "add it to --gpus, or pass --lenient to leave such jobs out");
  }
  JobRow row;
  row.id = id;
  row.job.arrival = *submit;
  row.job.gpus = static_cast<int32_t>(gpus->count);
  const std::string user = field(fields, "UserId");
  row.user = user.substr(0, user.find('('));
  row.virtual_cluster = field(fields, "Partition");
  row.kind = field(fields, "Name");
  row.durations = {*end - *start};
  const auto minutes = parse_integer(field(fields, "TimeLimit"));  // or UNLIMITED, or Partition_Limit
  if (minutes && *minutes > 0 && *minutes < kMostSeconds / 60) row.limit = Time(*minutes * 60 * kSecond.value);
  return jobs.add(std::move(row), line);
}

}  // namespace

Result<LoadedJobs> load_jobcomp(LineReader reader, const LoadOptions& options) {
  JobCollector jobs(reader.name(), options, {});
  const std::string name = reader.name();
  bool any_gpus = false;
  while (true) {
    const auto line = reader.next();
    if (!line) return line.error();
    if (!*line) break;
    if ((*line)->find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (Status status = add_jobcomp_line(**line, reader.line_number(), jobs, any_gpus); !status) return status.error();
  }
  if (!any_gpus) {
    return Error{"no job of the log has GPUs", name,
                 "Slurm writes them where slurm.conf has AccountingStorageTRES=gres/gpu"};
  }
  auto loaded = jobs.finish(TieOrder::source);
  if (!loaded) return loaded;
  loaded->real = {"submission", "duration", "GPUs", "user", "partition"};
  if (!loaded->workload.limits.empty()) loaded->real.emplace_back("time limit");
  return loaded;
}

}  // namespace forerun::cluster
