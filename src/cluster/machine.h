// A cluster of machines: pools of GPUs of one type each, counted or laid out as nodes in racks.
//
// Counted pools (gpus_per_node 0) know no topology: any free GPUs will do, which costs O(1) and is what most published
// simulations do. Where nodes are given, a gang is placed on as few nodes as possible and may run slower across nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "cluster/job.h"

namespace forerun::cluster {

struct GpuPool {
  std::string type;  // "a100"; as canonical_type() writes it
  int32_t gpus = 0;
  int32_t gpus_per_node = 0;  // 0: counted without topology
  int32_t nodes_per_rack = 0;
  Bytes memory;  // of one GPU; 0: not stated, so any job fits
  [[nodiscard]] int32_t nodes() const { return gpus_per_node == 0 ? 0 : (gpus + gpus_per_node - 1) / gpus_per_node; }
};

struct Cluster {
  std::vector<GpuPool> pools;  // one for each GPU type
  std::string text;            // as it was written: "a100=10,v100=20"
  [[nodiscard]] int64_t gpus() const;
  [[nodiscard]] std::optional<TypeIndex> find(std::string_view type) const;
  // The most GPUs that one gang can get.
  [[nodiscard]] int32_t largest_pool() const;
};

// GPU names are compared without case, blanks, '-', '_' and the maker's prefixes: "GTX2080Ti" and "2080ti" are one.
std::string canonical_type(std::string_view name);

// "480": one pool of any type, called "gpu". "a100=10,2080ti=15": a pool each.
Result<Cluster> parse_cluster(const std::string& text);

// The workload with its columns of durations in the order of the cluster's pools; a pool whose type the workload does
// not know is an Error that names those it does. Workloads with one duration per job stay as they are.
Result<Workload> on_cluster(Workload workload, const Cluster& cluster);

// Whether the job can ever start: some pool has as many GPUs, enough memory, and a duration for it.
bool can_ever_run(const Job& job, const Durations& durations, JobIndex index, const Cluster& cluster);

}  // namespace forerun::cluster
