// machine.json files (cost/calibrated/machine.h) as data that others can use: whether a file can be relied on, and its ops as
// records (op/1) that the default models can be trained on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cost/calibrated/machine.h"
#include "device/catalogue.h"
#include "records/data_check.h"
#include "records/data_merge.h"

namespace forerun {

// By its first bytes.
bool is_machine_file(const std::string& file);

// What is wrong with a file that was read: the card lacks something (broken), an op is faster than its GPU can be (broken), repeats or
// repetitions differ, readings of the host drift (warnings). `problem` hears of each; the count of broken ones is the answer.
int64_t check_machine(const Machine& machine, const std::string& file, const DeviceCatalogue& devices,
                      const std::function<void(const DataProblem&)>& problem);

// The same of files, counted as `check_data` counts: an op is a sample.
Result<DataCheck> check_machines(const std::vector<std::string>& files,
                                 const std::function<void(const DataProblem&)>& problem,
                                 const std::function<void(const Error&)>& unreadable);

// The ops of the files as op/1 records behind an env/1 line for each file, in `out`. Files that check_machine finds broken are left
// out and named; of equal ops of one machine the first is kept.
Result<MergeResult> merge_machines(const std::string& out, const std::vector<std::string>& files,
                                   const MergeOptions& options);

}  // namespace forerun
