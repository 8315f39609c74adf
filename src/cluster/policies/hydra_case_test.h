// For tests: the first jobs of a shared hydra case, on 10 A100, 15 2080Ti and 20 V100.
#pragma once

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cluster/simulator.h"

namespace forerun::cluster {

struct HydraCase {
  Workload workload;
  Cluster cluster;
};

// Columns: number, name, submit time, deadline ("inf": none), seconds on A100, V100, GTX2080Ti. Nothing where the shared
// data are not there.
inline std::optional<HydraCase> hydra_case(const std::string& file, size_t first) {
  std::ifstream in(std::string(FORERUN_SHARED_DATA_DIR) + "/cluster/hydra/" + file);
  if (!in) return std::nullopt;
  HydraCase result;
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
