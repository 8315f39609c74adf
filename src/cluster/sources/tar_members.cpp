#include "cluster/sources/tar_members.h"

#include <algorithm>

#include "base/byte_source.h"

namespace forerun::cluster {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMost = size_t{256} << 20;

Error no_tar(const std::string& name) { return {"it is no tar archive, or cut short", name, "is --format right?"}; }

std::string field(const std::string& bytes, size_t at, size_t size) {
  const std::string text = bytes.substr(at, size);
  return text.substr(0, text.find('\0'));
}

// An archive without its end mark has lost the files behind the last one.
Error cut_short(const std::string& name, const std::string& last) {
  return {"the archive is cut short behind its file '" + last + "'", name, "fetch it again"};
}

}  // namespace

Result<std::string> read_whole(const std::string& path) {
  auto source = ByteSource::open(path, ByteSource::Archives::taken);
  if (!source) return source.error();
  std::string text;
  std::vector<char> piece(size_t{1} << 20);
  while (true) {
    const auto got = (*source)->read(piece.data(), piece.size());
    if (!got) return got.error();
    if (*got == 0) return text;
    text.append(piece.data(), *got);
    if (text.size() > kMost) return Error{"it holds more than 256 MiB", path, "unpack it and name the file in it"};
  }
}

Result<std::vector<TarMember>> parse_tar(const std::string& bytes, const std::string& name) {
  std::vector<TarMember> members;
  size_t at = 0;
  while (true) {
    if (at + kBlock > bytes.size()) return members.empty() ? no_tar(name) : cut_short(name, members.back().name);
    if (bytes[at] == '\0') break;  // the end is marked by empty blocks
    if (bytes.compare(at + 257, 5, "ustar") != 0) return no_tar(name);
    size_t size = 0;
    for (const char c : field(bytes, at + 124, 12)) {
      if (c == ' ') continue;
      if (c < '0' || c > '7' || size > kMost) return no_tar(name);
      size = size * 8 + static_cast<size_t>(c - '0');
    }
    const char kind = bytes[at + 156];
    at += kBlock;
    if (size > bytes.size() - at) return no_tar(name);
    if (kind == '0' || kind == '\0') members.push_back({field(bytes, at - kBlock, 100), bytes.substr(at, size)});
    at += std::min((size + kBlock - 1) / kBlock * kBlock, bytes.size() - at);
  }
  if (members.empty()) return no_tar(name);
  return members;
}

Result<std::vector<TarMember>> read_tar(const std::string& path) {
  const auto bytes = read_whole(path);
  if (!bytes) return bytes.error();
  return parse_tar(*bytes, path);
}

}  // namespace forerun::cluster
