#include "base/small_file.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace forerun {

Result<std::string> read_small_file(const std::filesystem::path& path, const SmallFile& expected) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{"the file cannot be opened", path.string(), "check the name and its permissions"};
  std::string text;
  std::array<char, size_t{1} << 14> piece;
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    text.append(piece.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > expected.largest) {
      return Error{fmt::format("the file holds more than {} MiB", expected.largest >> 20), path.string(),
                   expected.remedy};
    }
  }
  if (file.bad() || !file.eof()) return Error{"the file cannot be read", path.string(), "is it a folder?"};
  return text;
}

}  // namespace forerun
