#include "cluster/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/check.h"
#include "base/options_text.h"

namespace forerun::cluster {
namespace {

constexpr int32_t kMostGpus = 1'000'000'000;

Result<int32_t> parse_count(std::string_view text, const std::string& whole) {
  int32_t count = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (fault != std::errc() || stop != text.data() + text.size() || count < 1 || count > kMostGpus) {
    return Error{fmt::format("'{}' in '{}' is no number of GPUs", text, whole), "--gpus",
                 "write 480, or a100=10,v100=20 (1 to 1,000,000,000 GPUs of a type)"};
  }
  return count;
}

}  // namespace

int64_t Cluster::gpus() const {
  int64_t sum = 0;
  for (const GpuPool& pool : pools) sum += pool.gpus;
  return sum;
}

int32_t Cluster::largest_pool() const {
  int32_t most = 0;
  for (const GpuPool& pool : pools) most = std::max(most, pool.gpus);
  return most;
}

std::optional<TypeIndex> Cluster::find(std::string_view type) const {
  const std::string wanted = canonical_type(type);
  for (TypeIndex i = 0; i < pools.size(); ++i) {
    if (pools[i].type == wanted) return i;
  }
  return std::nullopt;
}

std::string canonical_type(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) text += static_cast<char>(std::tolower(c));
  }
  for (const std::string_view prefix : {"nvidia", "tesla", "geforce", "gtx", "rtx"}) {
    if (text.starts_with(prefix) && text.size() > prefix.size()) text.erase(0, prefix.size());
  }
  return text;
}

Result<Cluster> parse_cluster(const std::string& text) {
  Cluster cluster;
  cluster.text = text;
  if (!split_key_value(text)) {
    const auto count = parse_count(text, text);
    if (!count) return count.error();
    cluster.pools.push_back({.type = "gpu", .gpus = *count});
    return cluster;
  }
  const auto pools = parse_key_values(text, {"--gpus", "write each type once, as a100=10,v100=20"});
  if (!pools) return pools.error();
  for (const auto& [name, gpus] : *pools) {
    const auto count = parse_count(gpus, text);
    if (!count) return count.error();
    const std::string type = canonical_type(name);
    if (type.empty() || cluster.find(type)) {
      return Error{fmt::format("'{}' in '{}' names {}", name, text, type.empty() ? "no GPU type" : "a type again"),
                   "--gpus", "write each type once, as a100=10,v100=20"};
    }
    cluster.pools.push_back({.type = type, .gpus = *count});
  }
  return cluster;
}

Result<Workload> on_cluster(Workload workload, const Cluster& cluster) {
  if (workload.gpu_types.empty()) return workload;
  std::vector<std::string> known;
  for (const std::string& type : workload.gpu_types) known.push_back(canonical_type(type));
  std::vector<TypeIndex> column;
  for (const GpuPool& pool : cluster.pools) {
    const auto found = std::find(known.begin(), known.end(), pool.type);
    if (found == known.end()) {
      return Error{fmt::format("the jobs have no durations for GPU type '{}'", pool.type), "--gpus",
                   fmt::format("they have them for {}", fmt::join(workload.gpu_types, ", "))};
    }
    column.push_back(static_cast<TypeIndex>(found - known.begin()));
  }
  Durations truth(cluster.pools.size());
  truth.reserve(workload.jobs.size());
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    for (const TypeIndex type : column) truth.add(workload.truth.of(job, type));
  }
  workload.truth = std::move(truth);
  workload.gpu_types.clear();
  for (const GpuPool& pool : cluster.pools) workload.gpu_types.push_back(pool.type);
  return workload;
}

bool can_ever_run(const Job& job, const Durations& durations, JobIndex index, const Cluster& cluster) {
  for (TypeIndex type = 0; type < cluster.pools.size(); ++type) {
    const GpuPool& pool = cluster.pools[type];
    if (job.gpus <= pool.gpus && (pool.memory.value == 0 || job.memory <= pool.memory) &&
        durations.of(index, type) != kNever) {
      return true;
    }
  }
  return false;
}

}  // namespace forerun::cluster
