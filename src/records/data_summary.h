// What does this data set hold?
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "records/data_scan.h"

namespace forerun {

using Counts = std::map<std::string, int64_t>;

struct FamilySummary {
  std::string split;  // "train", "test", "ood"; empty where no split.json names the family
  int64_t records = 0;
  int64_t ok = 0;
  int64_t oom = 0;
  int64_t failed = 0;
  int64_t near_limit = 0;  // ok, within a tenth of the GPU's memory
  int64_t gpu_bound = 0;
  int64_t host_bound = 0;

  FamilySummary& operator+=(const FamilySummary& other);
};

// Records that say the same as one before them.
struct Repeats {
  int64_t count = 0;
  std::vector<std::string> examples;  // ids of the first few
};

struct DataSummary {
  int64_t files = 0;

  std::map<std::string, FamilySummary> families;
  Counts splits, precisions, optimizers, layouts, bounds, statuses, backends;

  int64_t samples = 0;
  Counts grids, ops, dtypes, sample_statuses;

  Repeats same_id;             // runs or samples
  Repeats same_configuration;  // runs of different ids

  int64_t not_aligned = 0;   // kernels were matched to ops by name
  double gpu_us = 0;         // kernel time of all measured runs
  double unmatched_us = 0;   // of it, in kernels that no op is known for
  Repeats mostly_unmatched;  // runs where these take more than a twentieth of the kernel time

  int64_t broken = 0;
  int64_t torn = 0;

  [[nodiscard]] FamilySummary all() const;
};

// Counts the records of the files. Broken records are counted, and told to `problem` where it is given.
Result<DataSummary> summarize_data(const std::vector<std::string>& files,
                                   const std::function<void(const DataProblem&)>& problem = {},
                                   const WorkControl& control = {});

}  // namespace forerun
