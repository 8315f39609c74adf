// small_file: the whole text of a file that has no business being large (catalogues, constants, readings of a machine).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace forerun {

// What a reader expects of a file.
struct SmallFile {
  size_t largest = 0;  // bytes
  std::string remedy;  // where it holds more
};

// No more than `largest` bytes are held, whatever the file is: devices and pipes that never end too.
Result<std::string> read_small_file(const std::filesystem::path& path, const SmallFile& expected);

}  // namespace forerun
