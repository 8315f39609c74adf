#include "base/data_dir.h"

#include <cstdlib>
#include <system_error>

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy = "set FORERUN_DATA to the folder `data` of the source tree or installation";

bool is_data_dir(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "devices", ignored);
}

}  // namespace

Result<fs::path> data_dir(const DataDirSearch& search) {
  if (!search.environment.empty()) {
    if (is_data_dir(search.environment)) return fs::path(search.environment);
    return Error{"FORERUN_DATA names a folder without devices/", search.environment, kRemedy};
  }
  fs::path folder = search.executable.parent_path();
  while (!folder.empty()) {
    for (const char* below : {"data", "share/forerun/data"}) {
      if (is_data_dir(folder / below)) return folder / below;
    }
    const fs::path parent = folder.parent_path();
    if (parent == folder) break;
    folder = parent;
  }
  if (!search.built_from.empty() && is_data_dir(search.built_from)) return search.built_from;
  return Error{"the data folder was not found", search.executable.string(), kRemedy};
}

Result<fs::path> data_dir() {
  DataDirSearch search;
  if (const char* value = std::getenv("FORERUN_DATA")) search.environment = value;
  std::error_code ignored;
  search.executable = fs::read_symlink("/proc/self/exe", ignored);
#ifdef FORERUN_DATA_DIR
  search.built_from = FORERUN_DATA_DIR;
#endif
  return data_dir(search);
}

}  // namespace forerun
