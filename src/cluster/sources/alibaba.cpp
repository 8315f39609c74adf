// Alibaba's pods of a GPU cluster (openb), a row each:
//
//   name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
//   openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427061
//
// Real: creation, GPUs, quality of service (as priority: latency-sensitive pods first). The duration is deletion less
// scheduling. A pod that asks for part of a GPU (gpu_milli under 1000) gets a whole one here. Pods without GPUs are passed
// over; pods that were never scheduled have no duration. gpu_spec names the types a pod can use, parted by '|'.
#include <fmt/format.h>

#include "base/csv_rows.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/sources.h"

namespace forerun::cluster {
namespace {

constexpr const char* kAlibabaRemedy = "correct the row, or pass --lenient to leave such rows out";

struct AlibabaColumns {
  size_t name, gpus, created, deleted, scheduled;
  std::optional<size_t> spec, qos;
};

int32_t priority_of(const std::string& qos) {
  if (qos == "LS" || qos == "Guaranteed") return 2;
  return qos == "Burstable" ? 1 : 0;
}

// Whether some pool of the cluster is of a type in "V100M16|V100M32"; true where nothing is asked for.
bool has_type(const std::string& spec, const Cluster* cluster) {
  if (spec.empty() || cluster == nullptr) return true;
  if (cluster->pools.size() == 1 && cluster->pools.front().type == "gpu") return true;
  for (size_t begin = 0; begin <= spec.size();) {
    const size_t end = std::min(spec.find('|', begin), spec.size());
    if (cluster->find(spec.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

Status add_alibaba_row(const CsvRows& rows, const AlibabaColumns& columns, JobCollector& jobs) {
  const auto gpus = parse_integer(rows.cell(columns.gpus));
  const auto created = parse_seconds(rows.cell(columns.created));
  if (!rows.complete() || !gpus || *gpus < 0 || *gpus > 1'000'000 || !created) {
    return jobs.reject(Fault::malformed, rows.line(), "no pod: GPUs or creation are no numbers", kAlibabaRemedy);
  }
  if (*gpus == 0) {
    jobs.pass_over();
    return {};
  }
  const auto scheduled = parse_seconds(rows.cell(columns.scheduled));
  const auto deleted = parse_seconds(rows.cell(columns.deleted));
  const std::string& name = rows.cell(columns.name);
  if (!scheduled || !deleted || *scheduled == kNever || *deleted == kNever) {
    if (rows.cell(columns.scheduled).empty()) {
      jobs.pass_over();
      return {};
    }
    return jobs.reject(Fault::malformed, rows.line(), fmt::format("times of pod '{}' are no numbers", name),
                       kAlibabaRemedy);
  }
  if (!has_type(rows.cell(columns.spec), jobs.options().cluster)) {
    return jobs.reject(
        Fault::unknown_gpu_type, rows.line(),
        fmt::format("pod '{}' needs a GPU of type {}, which the cluster has not", name, rows.cell(columns.spec)),
        "add it to --gpus, or pass --lenient to leave such pods out");
  }
  JobRow row;
  row.id = name;
  row.job.arrival = *created;
  row.job.gpus = static_cast<int32_t>(*gpus);
  row.job.priority = priority_of(rows.cell(columns.qos));
  row.virtual_cluster = rows.cell(columns.qos);
  row.durations = {*deleted - *scheduled};
  return jobs.add(std::move(row), rows.line());
}

}  // namespace

Result<LoadedJobs> load_alibaba(LineReader reader, const LoadOptions& options) {
  CsvRows rows(std::move(reader), ',');
  if (Status status = rows.begin(); !status) return status.error();
  AlibabaColumns columns{0, 0, 0, 0, 0, rows.column("gpu_spec"), rows.column("qos")};
  const std::pair<const char*, size_t*> needed[] = {{"name", &columns.name},
                                                    {"num_gpu", &columns.gpus},
                                                    {"creation_time", &columns.created},
                                                    {"deletion_time", &columns.deleted},
                                                    {"scheduled_time", &columns.scheduled}};
  for (const auto& [name, place] : needed) {
    const auto found = rows.need(name);
    if (!found) return found.error();
    *place = *found;
  }
  JobCollector jobs(rows.name(), options, {});
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status status = add_alibaba_row(rows, columns, jobs); !status) return status.error();
  }
  auto loaded = jobs.finish(TieOrder::source);
  if (loaded) {
    loaded->real = {"creation", "GPUs", "duration", "quality of service"};
    loaded->made = {"pods with part of a GPU get a whole one"};
  }
  return loaded;
}

}  // namespace forerun::cluster
