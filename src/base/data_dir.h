// data_dir(): the folder with the device catalogue, cost constants and other files that the program reads at run time.
//
// Looked for in this order: the environment variable FORERUN_DATA; `data` or `share/forerun/data` beside or above the
// running executable, or, first, the shared library that this is part of (a Python module); the source tree this was built from (compile definition FORERUN_DATA_DIR). A folder counts when
// it holds `devices/`. FORERUN_DATA that names no such folder is an Error, not a reason to look elsewhere.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace forerun {

Result<std::filesystem::path> data_dir();

// The same search with its starting points given; empty ones are left out. `library` and `executable` are files, the others folders.
struct DataDirSearch {
  std::string environment;
  std::filesystem::path executable;
  std::filesystem::path built_from;
  std::filesystem::path library = {};  // that holds this code, where it is not the program itself
};
Result<std::filesystem::path> data_dir(const DataDirSearch& search);

}  // namespace forerun
