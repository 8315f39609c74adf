// dataset("ets"): the folder or file of a data set that other authors published and that this project does not carry.
//
// Data sets lie below one folder, which the environment variable FORERUN_DATASETS names; docs/datasets.md lists them,
// with where they come from. What the project measured itself lies in `data/` (base/data_dir.h).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun {

// `name` is a path below the folder, such as "hkbu/throughput.csv".
Result<std::filesystem::path> dataset(std::string_view name);

// The same with the folder given; an empty one is an Error.
Result<std::filesystem::path> dataset(std::string_view name, const std::string& folder);

}  // namespace forerun
