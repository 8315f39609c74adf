// Hydra's cases: jobs derived from Alibaba's PAI trace, with seconds on three GPU types and some deadlines.
//
//   ,job_name,norm_job_submit_time,ddl,A100,V100,GTX2080Ti
//   0,fab657eb909716a8f8db37f5,0,7767.0,2141.0,3621.0,5452.0
//
// Job sizes are real; the ratios between GPU types and the deadlines were drawn at random by its authors, and all jobs
// arrive at 0. Every job takes one GPU. Columns behind `ddl` name GPU types, however many there are.
#include "cluster/sources/sources.h"

#include "base/csv_rows.h"
#include "cluster/sources/cell_values.h"

namespace forerun::cluster {
namespace {

Status add_hydra_row(const CsvRows& rows, size_t name, size_t submitted, size_t deadline, JobCollector& jobs) {
  JobRow row;
  row.id = rows.cell(name);
  const auto arrival = parse_seconds(rows.cell(submitted));
  const auto due = rows.cell(deadline).empty() ? std::optional<Time>(kNever) : parse_seconds(rows.cell(deadline));
  bool whole = rows.complete() && arrival.has_value() && due.has_value();
  for (size_t column = deadline + 1; column < rows.heading().size(); ++column) {
    const auto duration = parse_seconds(rows.cell(column));
    whole = whole && duration.has_value();
    row.durations.push_back(duration.value_or(kNever));
  }
  if (!whole) {
    return jobs.reject(Fault::malformed, rows.line(),
                       "no job: it needs seconds in the columns of submission, deadline and every GPU type",
                       "correct the row, or pass --lenient to leave such rows out");
  }
  row.job.arrival = *arrival;
  row.job.deadline = *due;
  return jobs.add(std::move(row), rows.line());
}

}  // namespace

Result<LoadedJobs> load_hydra(LineReader reader, const LoadOptions& options) {
  CsvRows rows(std::move(reader), ',');
  if (Status status = rows.begin(); !status) return status.error();
  const auto name = rows.need("job_name");
  const auto submitted = rows.need("norm_job_submit_time");
  const auto deadline = rows.need("ddl");
  for (const auto* column : {&name, &submitted, &deadline}) {
    if (!*column) return column->error();
  }
  const auto first_type = rows.heading().begin() + static_cast<std::ptrdiff_t>(*deadline) + 1;
  const std::vector<std::string> types(first_type, rows.heading().end());
  if (types.empty()) return Error{"no column of a GPU type follows 'ddl'", rows.name() + ":1", "is --format right?"};
  JobCollector jobs(rows.name(), options, types);
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status status = add_hydra_row(rows, *name, *submitted, *deadline, jobs); !status) return status.error();
  }
  auto loaded = jobs.finish(TieOrder::source);
  if (loaded) {
    loaded->real = {"duration on one type"};
    loaded->made = {"ratios between GPU types: drawn", "deadlines: drawn", "submission: all at 0", "GPUs: one each"};
  }
  return loaded;
}

}  // namespace forerun::cluster
