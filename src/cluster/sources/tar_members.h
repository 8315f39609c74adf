// The files in a tar archive (plain, gzip or Zstandard), whole and in memory: for the small archives that traces come in.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::cluster {

struct TarMember {
  std::string name;
  std::string text;
};

// Regular files only, in the archive's order. At most 256 MiB in all.
Result<std::vector<TarMember>> read_tar(const std::string& path);
// The same of an archive's bytes; `name` stands for the file in errors.
Result<std::vector<TarMember>> parse_tar(const std::string& bytes, const std::string& name);

// All bytes of a file, decompressed.
Result<std::string> read_whole(const std::string& path);

}  // namespace forerun::cluster
