// ByteSource: the bytes of a file, decompressed where it is gzip or Zstandard, one piece at a time.
//
// The form is told by the first bytes, not by the file's name; several compressed parts one after the other are read as
// one. Zstandard windows of up to 128 MiB (`zstd --long=27`) are taken. A build without zlib or libzstd refuses the
// files it cannot read with an Error; so are zip, bzip2, xz and 7z files and, where no archive is expected, tar archives
// refused. Where the same few bytes repeat for 8 MiB (a bomb, /dev/zero) reading ends in an Error. Pipes can be read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"

namespace forerun {

class ByteSource {
 public:
  // Whether a tar archive is taken for its bytes.
  enum class Archives { refused, taken };
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path, Archives archives = Archives::refused);

  ByteSource() = default;
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Reads up to `size` bytes; 0 at the end of the file. After an Error, which names the file, nothing more is read.
  virtual Result<size_t> read(char* into, size_t size) = 0;
};

}  // namespace forerun
