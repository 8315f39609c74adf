#include "base/datasets.h"

#include <cstdlib>
#include <system_error>

namespace forerun {

Result<std::filesystem::path> dataset(std::string_view name, const std::string& folder) {
  if (folder.empty()) {
    return Error{"this data set is not part of the project", std::string(name),
                 "set FORERUN_DATASETS to the folder that holds it (docs/datasets.md says where it comes from)"};
  }
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  return Error{"FORERUN_DATASETS names a folder without this data set", path.string(),
               "docs/datasets.md says where it comes from"};
}

Result<std::filesystem::path> dataset(std::string_view name) {
  const char* folder = std::getenv("FORERUN_DATASETS");
  return dataset(name, folder != nullptr ? folder : "");
}

}  // namespace forerun
