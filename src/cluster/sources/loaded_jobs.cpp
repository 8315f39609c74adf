#include "cluster/sources/loaded_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "cluster/sources/introsort_order.h"

namespace forerun::cluster {
namespace {

constexpr Time kLatest{7'000'000'000 * kSecond.value};  // since 1970, which leaves 70 years for simulated time
constexpr Time kLongestJob{4'000'000'000 * kSecond.value};
constexpr const char* kSkip = "correct the row, or pass --lenient to count such rows and leave them out";

std::vector<uint32_t> order_of(const std::vector<Job>& jobs, TieOrder ties) {
  if (ties == TieOrder::introsort) {
    std::vector<int64_t> keys;
    keys.reserve(jobs.size());
    for (const Job& job : jobs) keys.push_back(job.arrival.value);
    return introsort_order(keys);
  }
  std::vector<uint32_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return jobs[a].arrival < jobs[b].arrival; });
  return order;
}

// Dependencies as they are once the jobs stand in that order. Jobs that are left out come behind those that need them.
void reorder_after(Workload& workload, const std::vector<uint32_t>& order) {
  if (workload.after.empty()) return;
  std::vector<JobIndex> place(workload.jobs.size(), kNoJob);
  for (size_t to = 0; to < order.size(); ++to) place[order[to]] = static_cast<JobIndex>(to);
  std::vector<std::vector<JobIndex>> after;
  for (const uint32_t from : order) {
    after.emplace_back();
    for (const JobIndex before : workload.after[from]) {
      CHECK(place[before] < after.size(), "a job that runs after a later one");
      after.back().push_back(place[before]);
    }
  }
  workload.after = std::move(after);
}

// The workload with its jobs in that order; those behind the end of `order` are left out.
void reorder(Workload& workload, const std::vector<uint32_t>& order) {
  std::vector<Job> jobs;
  std::vector<std::string> ids;
  std::vector<NamedConfiguration> named;
  std::vector<GangTraffic> traffic;
  std::vector<Time> limits;
  std::vector<int32_t> array_of;
  Durations truth(workload.truth.types());
  reorder_after(workload, order);
  jobs.reserve(order.size());
  truth.reserve(order.size());
  for (const uint32_t from : order) {
    jobs.push_back(workload.jobs[from]);
    if (!workload.ids.empty()) ids.push_back(std::move(workload.ids[from]));
    if (!workload.named.empty()) named.push_back(workload.named[from]);
    if (!workload.traffic.empty()) traffic.push_back(workload.traffic[from]);
    if (!workload.limits.empty()) limits.push_back(workload.limits[from]);
    if (!workload.array_of.empty()) array_of.push_back(workload.array_of[from]);
    for (TypeIndex type = 0; type < truth.types(); ++type) truth.add(workload.truth.of(from, type));
  }
  workload.jobs = std::move(jobs);
  workload.ids = std::move(ids);
  workload.named = std::move(named);
  workload.traffic = std::move(traffic);
  workload.limits = std::move(limits);
  workload.array_of = std::move(array_of);
  workload.truth = std::move(truth);
}

// Lets the first arrival be time 0. Sources with dates count from 1970, which the origin keeps.
void rebase(Workload& workload) {
  if (workload.jobs.empty()) return;
  const Time first = workload.jobs.front().arrival;
  workload.origin = first.value / kSecond.value;
  for (Job& job : workload.jobs) {
    job.arrival -= first;
    if (job.deadline != kNever) job.deadline -= first;
  }
}

}  // namespace

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::malformed: return "malformed";
    case Fault::negative_time: return "negative time";
    case Fault::too_large: return "larger than the cluster";
    case Fault::duplicate: return "duplicate";
    case Fault::out_of_order: return "out of order";
    case Fault::unknown_gpu_type: return "unknown GPU type";
    case Fault::no_duration: return "no duration";
  }
  return "";
}

int64_t LoadedJobs::left_out() const { return std::accumulate(faults.begin(), faults.end(), int64_t{0}); }

JobCollector::JobCollector(std::string file, const LoadOptions& options, std::vector<std::string> gpu_types)
    : file_(std::move(file)), options_(options) {
  loaded_.workload.gpu_types = std::move(gpu_types);
  const std::vector<std::string>& types = loaded_.workload.gpu_types;
  loaded_.workload.truth = Durations(std::max<size_t>(types.size(), 1));
  if (options_.cluster == nullptr) return;
  for (const GpuPool& pool : options_.cluster->pools) {
    const auto same = [&](const std::string& type) { return canonical_type(type) == pool.type; };
    const auto found = std::find_if(types.begin(), types.end(), same);
    column_.emplace_back();
    if (types.empty()) column_.back() = 0;
    if (found != types.end()) column_.back() = static_cast<TypeIndex>(found - types.begin());
  }
}

Status JobCollector::reject(Fault fault, int64_t line, const std::string& what, const std::string& remedy) {
  rejected_ = true;
  if (!options_.lenient) return Error{what, fmt::format("{}:{}", file_, line), remedy};
  ++loaded_.faults[static_cast<size_t>(fault)];
  return {};
}

Status JobCollector::check_size(const JobRow& row, int64_t line) {
  const bool known = std::all_of(column_.begin(), column_.end(), [](const auto& column) { return column.has_value(); });
  if (options_.cluster == nullptr || !known) return {};  // finish() says which type is not known
  bool large_enough = false;
  for (size_t i = 0; i < column_.size(); ++i) {
    const GpuPool& pool = options_.cluster->pools[i];
    if (row.durations[*column_[i]] == kNever) continue;
    const bool memory = pool.memory.value == 0 || row.job.memory <= pool.memory;
    if (memory && pool.gpus >= row.job.gpus) return {};
    large_enough = large_enough || pool.gpus >= row.job.gpus;
  }
  if (large_enough) {
    return reject(Fault::too_large, line,
                  fmt::format("job '{}' needs {:.1f} GiB a GPU, more than any of the cluster has", row.id,
                              gibibytes(row.job.memory)),
                  kSkip);
  }
  return reject(
      Fault::too_large, line,
      fmt::format("job '{}' asks for {} GPUs, more than the cluster has of a type it runs on", row.id, row.job.gpus),
      "give more --gpus, leave such jobs out with --max-gpus, or pass --lenient");
}

Status JobCollector::check(const JobRow& row, int64_t line) {
  const Job& job = row.job;
  if (job.gpus < 1) {
    return reject(Fault::malformed, line, fmt::format("job '{}' asks for {} GPUs", row.id, job.gpus), kSkip);
  }
  if (job.least_gpus < 0 || job.most_gpus < 0 || job.least_gpus > job.gpus ||
      (job.elastic() ? job.most_gpus < job.gpus : job.least_gpus > 0)) {
    return reject(Fault::malformed, line,
                  fmt::format("job '{}' runs with {} to {} GPUs and asks for {}", row.id, job.least_gpus, job.most_gpus,
                              job.gpus),
                  kSkip);
  }
  if (job.arrival.value < 0 || job.deadline.value < 0) {
    return reject(Fault::negative_time, line, fmt::format("job '{}' has a negative time", row.id), kSkip);
  }
  if (job.arrival > kLatest) {
    return reject(Fault::malformed, line, fmt::format("job '{}' arrives after the year 2190", row.id), kSkip);
  }
  bool runs = false;
  for (const Time duration : row.durations) {
    if (duration.value < 0) {
      return reject(Fault::negative_time, line, fmt::format("job '{}' has a negative duration", row.id), kSkip);
    }
    if (duration.value == 0) {
      return reject(Fault::no_duration, line, fmt::format("job '{}' takes no time", row.id), kSkip);
    }
    if (duration > kLongestJob && duration != kNever) {
      return reject(Fault::malformed, line, fmt::format("job '{}' runs for more than 127 years", row.id), kSkip);
    }
    runs = runs || duration != kNever;
  }
  if (!runs) return reject(Fault::no_duration, line, fmt::format("job '{}' has no duration", row.id), kSkip);
  if (must_be_sorted_ && job.arrival < latest_) {
    return reject(Fault::out_of_order, line, fmt::format("job '{}' arrives before the one above it", row.id),
                  "sort the rows by arrival, or pass --lenient to leave such rows out");
  }
  if (!duplicates_ && !row.id.empty() && !seen_.insert(row.id).second) {
    return reject(Fault::duplicate, line, fmt::format("job '{}' stands in the file already", row.id), kSkip);
  }
  latest_ = std::max(latest_, job.arrival);
  return {};
}

bool JobCollector::wanted(const JobRow& row) const {
  const Time arrival = row.job.arrival;
  return (!options_.from || arrival >= *options_.from) && (!options_.to || arrival < *options_.to) &&
         (!options_.most_gpus || row.job.gpus <= *options_.most_gpus);
}

int32_t JobCollector::intern(const std::string& name, std::vector<std::string>& names,
                             std::unordered_map<std::string, int32_t>& index) {
  if (name.empty()) return -1;
  const auto [place, is_new] = index.try_emplace(name, static_cast<int32_t>(names.size()));
  if (is_new) names.push_back(name);
  return place->second;
}

// What few sources tell of their jobs takes no memory where none does. The job itself has been added.
void JobCollector::keep_details(const JobRow& row) {
  Workload& workload = loaded_.workload;
  if (row.configuration) {
    const auto [place, is_new] =
        configurations_.try_emplace(*row.configuration, static_cast<int32_t>(workload.configurations.size()));
    if (is_new) workload.configurations.push_back(*row.configuration);
    workload.named.resize(workload.jobs.size());
    workload.named.back() = {place->second, row.iterations, row.measured};
  } else if (!workload.named.empty()) {
    workload.named.emplace_back();
  }
  if (row.limit != kNever || !workload.limits.empty()) {
    workload.limits.resize(workload.jobs.size(), kNever);
    workload.limits.back() = row.limit;
  }
  if (array_ >= 0 || !workload.array_of.empty()) {
    workload.array_of.resize(workload.jobs.size(), -1);
    workload.array_of.back() = array_;
  }
  const GangTraffic traffic{row.gradients, row.iterations};
  if (traffic.known() || !workload.traffic.empty()) {
    workload.traffic.resize(workload.jobs.size());
    workload.traffic.back() = traffic;
  }
}

// The jobs that a row's must wait for. What the options leave out is not waited for.
Result<std::vector<JobIndex>> JobCollector::those_before(const JobRow& row, int64_t line) {
  std::vector<JobIndex> before;
  for (const std::string& name : row.after) {
    const auto found = called_.find(name);
    if (found != called_.end()) {
      before.insert(before.end(), found->second.begin(), found->second.end());
    } else if (seen_.contains(name) && name != row.id) {
      ++dropped_;
    } else {
      if (const Status status = reject_order(row.id, name, line); !status) return status.error();
      return std::vector<JobIndex>();
    }
  }
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  return before;
}

Status JobCollector::reject_order(const std::string& job, const std::string& before, int64_t line) {
  return reject(Fault::malformed, line,
                fmt::format("job '{}' runs after '{}', which does not stand above it", job, before), kSkip);
}

Status JobCollector::add_array(const JobRow& row, const ArrayRow& array, int64_t line) {
  if (std::find(row.after.begin(), row.after.end(), row.id) != row.after.end()) {
    return reject_order(row.id, row.id, line);
  }
  if (!seen_.insert(row.id).second) {
    return reject(Fault::duplicate, line, fmt::format("job '{}' stands in the file already", row.id), kSkip);
  }
  array_ = static_cast<int32_t>(loaded_.workload.arrays.size());
  loaded_.workload.arrays.push_back({array.most_at_once});
  for (const int64_t index : array.indices) {
    JobRow one = row;
    one.id = fmt::format("{}_{}", row.id, index);
    const size_t before = loaded_.workload.jobs.size();
    if (Status status = add(std::move(one), line); !status) return status;
    if (dependencies_ && loaded_.workload.jobs.size() > before) {
      called_[row.id].push_back(static_cast<JobIndex>(before));
    }
  }
  array_ = -1;
  return {};
}

Status JobCollector::add(JobRow row, int64_t line) {
  if (options_.work != nullptr) {
    if (Status status = options_.work->advance(); !status) return status;
  }
  CHECK(row.durations.size() == loaded_.workload.truth.types(), "a row with other columns than its source");
  rejected_ = false;
  if (Status status = check(row, line); !status || rejected_) return status;
  if (!wanted(row)) {
    ++loaded_.filtered;
    return {};
  }
  if (Status status = check_size(row, line); !status || rejected_) return status;
  const auto before = those_before(row, line);
  if (!before) return before.error();
  if (rejected_) return {};
  Workload& workload = loaded_.workload;
  row.job.user = intern(row.user, workload.users, users_);
  row.job.virtual_cluster = intern(row.virtual_cluster, workload.virtual_clusters, virtual_clusters_);
  row.job.kind = intern(row.kind, workload.kinds, kinds_);
  workload.jobs.push_back(row.job);
  if (dependencies_) {
    workload.after.push_back(*before);
    called_[row.id].push_back(static_cast<JobIndex>(workload.jobs.size() - 1));
  }
  workload.ids.push_back(std::move(row.id));
  for (const Time duration : row.durations) workload.truth.add(duration);
  keep_details(row);
  return {};
}

Result<LoadedJobs> JobCollector::finish(TieOrder ties) {
  Workload& workload = loaded_.workload;
  std::vector<uint32_t> order = order_of(workload.jobs, ties);
  if (options_.first && order.size() > *options_.first) {
    loaded_.filtered += static_cast<int64_t>(order.size() - *options_.first);
    order.resize(*options_.first);
  }
  reorder(workload, order);
  rebase(workload);
  if (workload.jobs.empty()) {
    return Error{
        fmt::format("no job is left of {} that were read", loaded_.filtered + loaded_.left_out() + loaded_.passed_over),
        file_, "check --from, --to, --max-gpus and --first"};
  }
  if (options_.cluster != nullptr) {
    auto placed = on_cluster(std::move(workload), *options_.cluster);
    if (!placed) return placed.error();
    loaded_.workload = *std::move(placed);
  }
  if (dropped_ > 0) {
    loaded_.made.push_back(fmt::format("{} dependencies on jobs left out: taken as met", dropped_));
  }
  return std::move(loaded_);
}

}  // namespace forerun::cluster
