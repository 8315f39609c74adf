// ResourceData as files, for a machine with LibTorch and none of the readers' libraries: FILE holds the iterations
// (dataset_file.cpp), FILE.json the workloads. Needs no LibTorch.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/dataset/driple/workload.h"

namespace forerun::learn {

[[nodiscard]] Status save_resource_data(const ResourceData& data, const std::string& path);
Result<ResourceData> load_resource_data(const std::string& path);

}  // namespace forerun::learn
