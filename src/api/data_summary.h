// What does this data set hold?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/data_scan.h"
#include "report/data_summary.h"

namespace forerun {

// Counts the records of the files. Broken records are counted, and told to `problem` where it is given.
Result<DataSummary> summarize_data(const std::vector<std::string>& files,
                                   const std::function<void(const DataProblem&)>& problem = {});

}  // namespace forerun
