// "How near do predicted peaks of memory come?": the table of `forerun eval --suite memory`.
//
// On measured runs of an H200 (data/h200, which holds the starter set): ours; parameters x 4 x (2 + states), as common
// tools do; live storages without an allocator; DNNPerf where its weights can be loaded. A configuration that was measured
// several times counts once. Runs that went out of memory, or near it (reserved and context above 85 % of the GPU), tell
// how often "fits" is right; those that ran out have no ops on record and are built from the zoo.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/accuracy/memory_accuracy.h"
#include "records/data_scan.h"

namespace forerun {

struct MemorySuiteOptions {
  std::vector<std::string> records;  // files or folders; empty: the data folder's h200
  std::function<void(const DataProblem&)> problem;
};

Result<MemoryAccuracy> evaluate_memory(const MemorySuiteOptions& options, const WorkControl& control = {});

}  // namespace forerun
