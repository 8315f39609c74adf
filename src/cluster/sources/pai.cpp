// Alibaba PAI's logs of mini-batch times: one training job, a row for each worker and mini-batch that was logged.
//
//   ,worker,gpu,time,batch_time_norm
//   0,0,25,1,476
//
// `gpu` is the share of a GPU that a worker has, in percent; `time` counts mini-batches. Workers wait for each other, so a
// mini-batch takes as long as its slowest worker. Real: workers, shares, how times vary. Times are normalised to 1000 by
// the authors, taken for milliseconds here; mini-batches that were not logged take the mean of those that were.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/csv_rows.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/sources.h"

namespace forerun::cluster {

namespace {

struct PaiColumns {
  size_t worker = 0, share = 0, number = 0, taken = 0;
};

struct MiniBatches {
  std::map<int64_t, double> slowest;     // milliseconds, by number
  std::map<std::string, double> shares;  // of a GPU, by worker

  [[nodiscard]] double mean_ms() const {
    double sum = 0;
    for (const auto& [number, time] : slowest) sum += time;
    return slowest.empty() ? 0 : sum / static_cast<double>(slowest.size());
  }
  [[nodiscard]] int32_t gpus() const {
    double sum = 0;
    for (const auto& [worker, share] : shares) sum += share;
    return static_cast<int32_t>(std::clamp(std::ceil(sum), 1.0, 1e6));
  }
};

Status add_pai_row(const CsvRows& rows, const PaiColumns& columns, JobCollector& jobs, MiniBatches& batches) {
  const auto number = parse_integer(rows.cell(columns.number));
  const auto time = parse_number(rows.cell(columns.taken));
  const auto percent = parse_number(rows.cell(columns.share));
  if (!rows.complete() || !number || *number < 0 || !time || !(*time > 0 && *time < 1e9) || !percent ||
      !(*percent > 0 && *percent <= 1e5)) {
    return jobs.reject(Fault::malformed, rows.line(), "no mini-batch: its number, time or GPU share cannot be read",
                       "correct the row, or pass --lenient to leave such rows out");
  }
  double& most = batches.slowest[*number];
  most = std::max(most, *time);
  batches.shares[rows.cell(columns.worker)] = *percent / 100;
  return {};
}

}  // namespace

Result<LoadedJobs> load_pai(LineReader reader, const LoadOptions& options) {
  CsvRows rows(std::move(reader), ',');
  if (Status status = rows.begin(); !status) return status.error();
  PaiColumns columns;
  const std::pair<const char*, size_t*> needed[] = {{"worker", &columns.worker},
                                                    {"gpu", &columns.share},
                                                    {"time", &columns.number},
                                                    {"batch_time_norm", &columns.taken}};
  for (const auto& [name, place] : needed) {
    const auto found = rows.need(name);
    if (!found) return found.error();
    *place = *found;
  }
  JobCollector jobs(rows.name(), options, {});
  MiniBatches batches;
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status status = add_pai_row(rows, columns, jobs, batches); !status) return status.error();
  }
  JobRow row;
  row.id = std::filesystem::path(rows.name()).stem().string();
  row.iterations = batches.slowest.empty() ? 0 : static_cast<double>(batches.slowest.rbegin()->first);
  row.job.gpus = batches.gpus();
  row.durations = {time_from_seconds(batches.mean_ms() * 1e-3 * row.iterations)};
  if (Status status = jobs.add(std::move(row), rows.line()); !status) return status.error();
  auto loaded = jobs.finish(TieOrder::source);
  if (loaded) {
    loaded->real = {"workers", "their share of a GPU", "how mini-batch times vary"};
    loaded->made = {"mini-batch times: normalised, taken for milliseconds", "shares of GPUs add up to whole ones"};
  }
  return loaded;
}

}  // namespace forerun::cluster
