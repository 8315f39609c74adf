// Fuzzes the reading of files, plain, gzip and Zstandard, as pieces and as lines. The two must agree: the lines are the
// bytes, cut at their ends. What a small file unpacks to is read up to a limit.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/fuzz_file.h"
#include "base/line_reader.h"

namespace {

using forerun::ByteSource;
using forerun::LineReader;
using forerun::Result;

constexpr size_t kMost = size_t{1} << 17;

struct Unpacked {
  std::string bytes;
  bool whole = false;  // read to its end
};

Unpacked unpack(const std::string& path, size_t piece) {
  Unpacked out;
  auto source = ByteSource::open(path);
  if (!source) {
    CHECK(!source.error().what.empty(), "an error without what");
    return out;
  }
  std::array<char, 4096> buffer{};
  while (out.bytes.size() < kMost) {
    const Result<size_t> got = (*source)->read(buffer.data(), std::min(piece, buffer.size()));
    if (!got) {
      CHECK(!got.error().what.empty(), "an error without what");
      return out;
    }
    CHECK(*got <= piece, "more was read than asked for");
    if (*got == 0) {
      out.whole = true;
      return out;
    }
    out.bytes.append(buffer.data(), *got);
  }
  return out;
}

void check_lines(const std::string& path, const Unpacked& unpacked, size_t longest) {
  auto reader = LineReader::open(path, {.longest_line = longest, .first_buffer = 64});
  if (!reader) {
    CHECK(!unpacked.whole, "pieces could be read and lines not");
    return;
  }
  size_t at = unpacked.bytes.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark is no part of a line
  while (at < unpacked.bytes.size()) {
    const auto line = reader->next();
    if (!line || !*line) break;
    const size_t end = std::min(unpacked.bytes.find('\n', at), unpacked.bytes.size());
    if (end == unpacked.bytes.size() && !unpacked.whole) return;
    std::string expected = unpacked.bytes.substr(at, end - at);
    if (end < unpacked.bytes.size() && expected.ends_with('\r')) expected.pop_back();
    std::string found(**line);
    if (end == unpacked.bytes.size()) {  // a last line without its end may keep or lose "\r"
      while (expected.ends_with('\r')) expected.pop_back();
      while (found.ends_with('\r')) found.pop_back();
    }
    CHECK(found == expected, "a line is not what the bytes say");
    at = end + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forerun::FuzzFile file(data, size);
  const Unpacked whole = unpack(file.path(), 4096);
  const Unpacked pieces = unpack(file.path(), 1 + size % 7);
  CHECK(whole.whole == pieces.whole, "the size of the pieces decides whether the file can be read");
  const size_t both = std::min(whole.bytes.size(), pieces.bytes.size());
  CHECK(whole.bytes.compare(0, both, pieces.bytes, 0, both) == 0, "the size of the pieces decides what is read");
  check_lines(file.path(), whole, size % 2 == 0 ? 100 : size_t{1} << 20);
  return 0;
}
