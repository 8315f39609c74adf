// Slurm's accounting, as `sacct -X --parsable2` (or --parsable) prints it, with the columns named in the heading:
//
//   JobID|User|Partition|Submit|ElapsedRaw|ReqTRES|State
//   812|ann|gpu|2024-03-01T10:00:00|3600|billing=8,cpu=8,gres/gpu=2,mem=64G,node=1|COMPLETED
//
// Needed: JobID, Submit, ElapsedRaw (or Elapsed, or Start and End), and ReqTRES or AllocTRES (or ReqGRES). Job steps
// ("812.0", "812.batch") and jobs without GPUs are passed over, as are those that never ran. All columns are real. The
// time limit (TimelimitRaw, minutes, or Timelimit), the user's guess, is kept beside the duration.
#include <fmt/format.h>

#include "base/csv_rows.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/slurm_gpus.h"
#include "cluster/sources/sources.h"

namespace forerun::cluster {
namespace {

constexpr const char* kSacctRemedy = "correct the row, or pass --lenient to leave such rows out";

struct SacctColumns {
  std::optional<size_t> id, user, account, partition, submit, start, end, raw, elapsed, requested, allocated, gres,
      name, limit_minutes, limit;
};

SacctColumns find_columns(const CsvRows& rows) {
  return {rows.column("JobID"),   rows.column("User"),         rows.column("Account"),   rows.column("Partition"),
          rows.column("Submit"),  rows.column("Start"),        rows.column("End"),       rows.column("ElapsedRaw"),
          rows.column("Elapsed"), rows.column("ReqTRES"),      rows.column("AllocTRES"), rows.column("ReqGRES"),
          rows.column("JobName"), rows.column("TimelimitRaw"), rows.column("Timelimit")};
}

// "[days-]hours:minutes:seconds".
std::optional<Time> parse_elapsed(std::string_view text) {
  int64_t days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto given = parse_integer(text.substr(0, dash));
    if (!given || *given < 0 || *given > 100'000) return std::nullopt;
    days = *given;
    text.remove_prefix(dash + 1);
  }
  int64_t total = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t colon = std::min(text.find(':', begin), text.size());
    const auto part = parse_integer(text.substr(begin, colon - begin));
    if (!part || *part < 0 || *part > 1'000'000) return std::nullopt;
    total = total * 60 + *part;
    begin = colon + 1;
  }
  return Time((days * 86400 + total) * kSecond.value);
}

std::optional<Time> duration_of(const CsvRows& rows, const SacctColumns& columns) {
  if (columns.raw) return parse_seconds(rows.cell(columns.raw));
  if (columns.elapsed) return parse_elapsed(rows.cell(columns.elapsed));
  const auto start = parse_date(rows.cell(columns.start));
  const auto end = parse_date(rows.cell(columns.end));
  if (!start || !end) return std::nullopt;
  return *end - *start;
}

// "60" minutes or "1-00:00:00"; "UNLIMITED" and "Partition_Limit" state none.
Time limit_of(const CsvRows& rows, const SacctColumns& columns) {
  const auto minutes = parse_integer(rows.cell(columns.limit_minutes));
  if (minutes && *minutes > 0 && *minutes < kMostSeconds / 60) return Time(*minutes * 60 * kSecond.value);
  const auto stated = parse_elapsed(rows.cell(columns.limit));
  return stated && stated->value > 0 ? *stated : kNever;
}

Status add_sacct_row(const CsvRows& rows, const SacctColumns& columns, JobCollector& jobs) {
  const std::string& id = rows.cell(columns.id);
  if (id.find('.') != std::string::npos) {
    jobs.pass_over();
    return {};
  }
  const std::string& requested = rows.cell(columns.requested);
  const std::string& allocated = rows.cell(columns.allocated);
  const auto gpus = parse_slurm_gpus(!requested.empty()   ? requested
                                     : !allocated.empty() ? allocated
                                                          : rows.cell(columns.gres));
  const auto submit = parse_date(rows.cell(columns.submit));
  const auto duration = duration_of(rows, columns);
  if (id.empty() || !gpus || !submit || !duration) {
    return jobs.reject(Fault::malformed, rows.line(), "no job: its id, submission, duration or GPUs cannot be read",
                       kSacctRemedy);
  }
  if (gpus->count == 0 || duration->value == 0) {
    jobs.pass_over();
    return {};
  }
  if (!has_slurm_type(jobs.options().cluster, *gpus)) {
    return jobs.reject(Fault::unknown_gpu_type, rows.line(),
                       fmt::format("job '{}' asks for GPUs of type {}, which the cluster has not", id, gpus->type),
                       "add it to --gpus, or pass --lenient to leave such jobs out");
  }
  JobRow row;
  row.id = id;
  row.job.arrival = *submit;
  row.job.gpus = static_cast<int32_t>(gpus->count);
  row.user = columns.user ? rows.cell(columns.user) : rows.cell(columns.account);
  row.virtual_cluster = rows.cell(columns.partition);
  row.kind = rows.cell(columns.name);
  row.durations = {*duration};
  row.limit = limit_of(rows, columns);
  return jobs.add(std::move(row), rows.line());
}

}  // namespace

Result<LoadedJobs> load_sacct(LineReader reader, const LoadOptions& options) {
  CsvRows rows(std::move(reader), '|');
  if (Status status = rows.begin(); !status) return status.error();
  const SacctColumns columns = find_columns(rows);
  if (!columns.id || !columns.submit) return rows.need(columns.id ? "Submit" : "JobID").error();
  if (!columns.raw && !columns.elapsed && !(columns.start && columns.end)) return rows.need("ElapsedRaw").error();
  if (!columns.requested && !columns.allocated && !columns.gres) return rows.need("ReqTRES").error();
  JobCollector jobs(rows.name(), options, {});
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status status = add_sacct_row(rows, columns, jobs); !status) return status.error();
  }
  auto loaded = jobs.finish(TieOrder::source);
  if (!loaded) return loaded;
  loaded->real = {"submission", "duration", "GPUs", "user", "partition"};
  if (!loaded->workload.limits.empty()) loaded->real.emplace_back("time limit");
  return loaded;
}

}  // namespace forerun::cluster
