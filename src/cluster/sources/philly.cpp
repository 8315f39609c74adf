// The Philly trace (Microsoft, 2017) as a table of jobs, one row each, in no order:
//
//   timestamp,duration,num_gpus,gpu_time,cluster
//   2017-10-09 07:01:55,66.0,1,66.0,11cb48
//
// All columns are real: submission, seconds, GPUs, and the virtual cluster. Rows that are alike are different jobs. Jobs of
// one second keep the order in which the figures published for this trace take them (introsort_order.h).
#include "cluster/sources/sources.h"

#include "base/csv_rows.h"
#include "cluster/sources/cell_values.h"

namespace forerun::cluster {

Result<LoadedJobs> load_philly(LineReader reader, const LoadOptions& options) {
  CsvRows rows(std::move(reader), ',');
  if (Status status = rows.begin(); !status) return status.error();
  const auto submitted = rows.need("timestamp");
  const auto duration = rows.need("duration");
  const auto gpus = rows.need("num_gpus");
  for (const auto* column : {&submitted, &duration, &gpus}) {
    if (!*column) return column->error();
  }
  const auto cluster = rows.column("cluster");
  JobCollector jobs(rows.name(), options, {});
  jobs.allow_duplicates();  // they are called by their line
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    const auto time = parse_date(rows.cell(*submitted));
    const auto length = parse_seconds(rows.cell(*duration));
    const auto gang = parse_integer(rows.cell(*gpus));
    Status status;
    if (!rows.complete() || !time || !length || !gang || *gang < 1 || *gang > 1'000'000'000) {
      status = jobs.reject(Fault::malformed, rows.line(),
                           "no job: it needs a time, seconds and a number of GPUs in the heading's columns",
                           "correct the row, or pass --lenient to leave such rows out");
    } else {
      JobRow row;
      row.id = std::to_string(rows.line());
      row.job.arrival = *time;
      row.job.gpus = static_cast<int32_t>(*gang);
      row.durations = {*length};
      row.virtual_cluster = rows.cell(cluster);
      status = jobs.add(std::move(row), rows.line());
    }
    if (!status) return status.error();
  }
  auto loaded = jobs.finish(TieOrder::introsort);
  if (loaded) loaded->real = {"submission", "duration", "GPUs", "virtual cluster"};
  return loaded;
}

}  // namespace forerun::cluster
