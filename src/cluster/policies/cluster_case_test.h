// For tests: jobs and the cluster they run on, made up or the first of a case of the data set hydra.
#pragma once

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/datasets.h"
#include "cluster/simulator.h"

namespace forerun::cluster {

struct ClusterCase {
  Workload workload;
  Cluster cluster;
};

// A job for each row of durations, in seconds by type of GPU (below zero: cannot run there), all arriving together.
inline ClusterCase small_case(const std::vector<std::vector<int>>& seconds_by_type, const std::vector<int>& gpus) {
  ClusterCase result;
  for (size_t type = 0; type < gpus.size(); ++type) {
    result.cluster.pools.push_back({"type" + std::to_string(type), gpus[type]});
  }
  result.workload.truth = Durations(gpus.size());
  for (const auto& row : seconds_by_type) {
    result.workload.jobs.emplace_back();
    for (const int value : row) result.workload.truth.add(value < 0 ? kNever : time_from_seconds(value));
  }
  return result;
}

constexpr const char* kNoHydraCase = "needs the data set cluster/hydra: set FORERUN_DATASETS";

// On 10 A100, 15 2080Ti and 20 V100. Columns: number, name, submit time, deadline ("inf": none), seconds on A100, V100,
// GTX2080Ti. Nothing where the data set is not there.
inline std::optional<ClusterCase> hydra_case(const std::string& file, size_t first) {
  const auto path = dataset("cluster/hydra/" + file);
  if (!path) return std::nullopt;
  std::ifstream in(*path);
  ClusterCase result;
  result.cluster.pools = {{"a100", 10}, {"2080ti", 15}, {"v100", 20}};
  result.workload.truth = Durations(3);
  std::string line;
  std::getline(in, line);
  while (result.workload.jobs.size() < first && std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream columns(line);
    for (std::string cell; std::getline(columns, cell, ',');) cells.push_back(cell);
    Job job;
    if (cells.at(3) != "inf") job.deadline = time_from_seconds(std::stod(cells[3]));
    result.workload.jobs.push_back(job);
    for (const size_t column : {4, 6, 5}) result.workload.truth.add(time_from_seconds(std::stod(cells.at(column))));
  }
  return result;
}

}  // namespace forerun::cluster
