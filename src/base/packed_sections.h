// PackedSections: named parts of one file, each packed (Zstandard) by itself, so that a part is unpacked when it is asked
// for and the others are not. Reading the file holds every part to its checksum: a file that was cut short or changed is
// refused at once, not when the part is needed.
//
//   file: "forerun sections/1\n", how many; of each part its name, bytes packed and unpacked, CRC-32 of the packed ones;
//   then the packed parts, in the same order. Numbers have 32 bits, the lowest byte first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace forerun {

class PackedSections {
 public:
  static constexpr uint32_t kLargest = 1U << 28;  // bytes of a part, unpacked

  static Result<PackedSections> open(const std::filesystem::path& file);
  static Result<PackedSections> parse(std::string bytes);

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  // An Error where there is no such part.
  [[nodiscard]] Result<std::string> unpack(std::string_view name) const;

 private:
  struct Section {
    std::string name;
    uint32_t packed = 0;    // bytes
    uint32_t unpacked = 0;  // bytes
    uint32_t checksum = 0;
    size_t at = 0;
  };
  [[nodiscard]] const Section* find(std::string_view name) const;

  std::shared_ptr<const std::string> bytes_;  // shared by copies: it is large, and is not written to
  std::vector<Section> sections_;
};

// The file's bytes; names are told apart and have at most 255 bytes, parts at most kLargest.
Result<std::string> packed_sections(const std::vector<std::pair<std::string, std::string>>& sections);

}  // namespace forerun
