#include "base/data_dir.h"

#include <dlfcn.h>

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

// The data folder beside or above a file; empty: there is none.
fs::path data_above(const fs::path& file) {
  fs::path folder = file.parent_path();
  while (!folder.empty()) {
    for (const char* below : {"data", "share/forerun/data"}) {
      if (is_data_dir(folder / below)) return folder / below;
    }
    const fs::path parent = folder.parent_path();
    if (parent == folder) break;
    folder = parent;
  }
  return {};
}

// The file that this code was loaded from; empty where that is the program.
fs::path own_library(const fs::path& executable) {
  static const char kHere = 0;
  Dl_info info;
  if (dladdr(&kHere, &info) == 0 || info.dli_fname == nullptr) return {};
  const fs::path named = info.dli_fname;
  if (!named.has_parent_path()) return {};  // a program that was found on the PATH
  std::error_code failed;
  fs::path file = fs::canonical(named, failed);
  return failed || file == executable ? fs::path() : file;
}

}  // namespace

Result<fs::path> data_dir(const DataDirSearch& search) {
  if (!search.environment.empty()) {
    if (is_data_dir(search.environment)) return fs::path(search.environment);
    return Error{"FORERUN_DATA names a folder without devices/", search.environment, kRemedy};
  }
  for (const fs::path& file : {search.library, search.executable}) {
    if (fs::path found = data_above(file); !found.empty()) return found;
  }
  if (!search.built_from.empty() && is_data_dir(search.built_from)) return search.built_from;
  return Error{"the data folder was not found", search.executable.string(), kRemedy};
}

Result<fs::path> data_dir() {
  DataDirSearch search;
  if (const char* value = std::getenv("FORERUN_DATA")) search.environment = value;
  std::error_code ignored;
  search.executable = fs::read_symlink("/proc/self/exe", ignored);
  search.library = own_library(search.executable);
#ifdef FORERUN_DATA_DIR
  search.built_from = FORERUN_DATA_DIR;
#endif
  return data_dir(search);
}

}  // namespace forerun
