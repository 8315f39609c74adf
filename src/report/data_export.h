// The records of a data set as a table.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "records/data_scan.h"

namespace forerun {

// What is a row: an iteration record, an op of one, or an op sample.
enum class ExportRows : uint8_t { runs, ops, samples };

// Gives the heading and then every row to `line`, as CSV without line ends; stops at the first Error it returns. No row
// is an Error, and `line` is not called.
Status export_data(const std::vector<std::string>& files, ExportRows rows,
                   const std::function<Status(std::string_view)>& line,
                   const std::function<void(const DataProblem&)>& problem, const WorkControl& control = {});

}  // namespace forerun
