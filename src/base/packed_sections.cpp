#include "base/packed_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#if FORERUN_HAS_ZLIB && FORERUN_HAS_ZSTD
#include <zlib.h>
#include <zstd.h>
#endif

#include "base/little_endian.h"

namespace forerun {
namespace {

constexpr std::string_view kMagic = "forerun sections/1\n";
constexpr size_t kMostSections = 4096;

Error broken(std::string what) { return {std::move(what), "", "copy or download the file again"}; }

#if FORERUN_HAS_ZLIB && FORERUN_HAS_ZSTD

constexpr int kLevel = 19;

uint32_t checksum_of(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size())));
}

Result<std::string> packed(std::string_view bytes) {
  std::string into(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(into.data(), into.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) != 0) return Error{"cannot be packed", ZSTD_getErrorName(size), "free memory"};
  into.resize(size);
  return into;
}

Result<std::string> unpacked(std::string_view bytes, size_t size) {
  std::string into(size, '\0');
  const size_t got = ZSTD_decompress(into.data(), into.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) != 0) return broken(fmt::format("cannot be unpacked ({})", ZSTD_getErrorName(got)));
  if (got != size) return broken(fmt::format("has {} bytes in place of {}", got, size));
  return into;
}

#else

Error unable() { return {"this build has no zlib and libzstd", "", "install them and build again"}; }
uint32_t checksum_of(std::string_view /*bytes*/) { return 0; }
Result<std::string> packed(std::string_view /*bytes*/) { return unable(); }
Result<std::string> unpacked(std::string_view /*bytes*/, size_t /*size*/) { return unable(); }

#endif

}  // namespace

Result<PackedSections> PackedSections::open(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(file, failed);
  if (!stream || failed) {
    return Error{fmt::format("cannot be opened: {}", failed ? failed.message() : std::strerror(errno)), file.string(),
                 "check the path and its permissions"};
  }
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<uintmax_t>(stream.gcount()) != size) return broken("ends too early").within(file.string());
  Result<PackedSections> sections = parse(std::move(bytes));
  if (!sections) return sections.error().within(file.string());
  return sections;
}

Result<PackedSections> PackedSections::parse(std::string bytes) {
#if !(FORERUN_HAS_ZLIB && FORERUN_HAS_ZSTD)
  return unable();
#endif
  PackedSections result;
  std::string_view rest = bytes;
  if (!rest.starts_with(kMagic)) return broken("this is no file of packed sections");
  rest.remove_prefix(kMagic.size());
  uint32_t count = 0;
  if (!take_little(rest, count) || count > kMostSections) return broken("the table of sections is broken");
  for (uint32_t i = 0; i < count; ++i) {
    Section section;
    if (!take_short_text(rest, section.name) || !take_little(rest, section.packed) ||
        !take_little(rest, section.unpacked) || !take_little(rest, section.checksum) || section.unpacked > kLargest ||
        result.has(section.name)) {
      return broken("the table of sections is broken");
    }
    result.sections_.push_back(std::move(section));
  }
  for (Section& section : result.sections_) {
    if (rest.size() < section.packed) return broken(fmt::format("section {} ends too early", section.name));
    if (checksum_of(rest.substr(0, section.packed)) != section.checksum) {
      return broken(fmt::format("section {} was changed", section.name));
    }
    section.at = static_cast<size_t>(rest.data() - bytes.data());
    rest.remove_prefix(section.packed);
  }
  if (!rest.empty()) return broken("goes on behind its end");
  result.bytes_ = std::make_shared<const std::string>(std::move(bytes));
  return result;
}

std::vector<std::string> PackedSections::names() const {
  std::vector<std::string> names;
  for (const Section& section : sections_) names.push_back(section.name);
  return names;
}

const PackedSections::Section* PackedSections::find(std::string_view name) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const Section& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

Result<std::string> PackedSections::unpack(std::string_view name) const {
  const Section* section = find(name);
  if (section == nullptr) return broken(fmt::format("there is no section {}", name));
  Result<std::string> bytes =
      unpacked(std::string_view(*bytes_).substr(section->at, section->packed), section->unpacked);
  if (!bytes) return bytes.error().within(fmt::format("section {}", name));
  return bytes;
}

Result<std::string> packed_sections(const std::vector<std::pair<std::string, std::string>>& sections) {
  std::string bytes(kMagic);
  std::string data;
  put_little(bytes, static_cast<uint32_t>(sections.size()));
  for (const auto& [name, part] : sections) {
    CHECK(name.size() < 256 && part.size() <= PackedSections::kLargest && sections.size() <= kMostSections,
          "no section can be that large");
    const Result<std::string> small = packed(part);
    if (!small) return small.error();
    put_short_text(bytes, name);
    put_little(bytes, static_cast<uint32_t>(small->size()));
    put_little(bytes, static_cast<uint32_t>(part.size()));
    put_little(bytes, checksum_of(*small));
    data += *small;
  }
  return bytes + data;
}

}  // namespace forerun
