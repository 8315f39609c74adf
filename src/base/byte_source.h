// ByteSource: the bytes of a file, decompressed where it is gzip or Zstandard, one piece at a time.
//
// The form is told by the first bytes, not by the file's name; several compressed parts one after the other are read as
// one. Zstandard windows of up to 128 MiB (`zstd --long=27`) are taken. A build without zlib or libzstd refuses the
// files it cannot read with an Error.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"

namespace forerun {

class ByteSource {
 public:
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path);

  ByteSource() = default;
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Reads up to `size` bytes; 0 at the end of the file. After an Error nothing more is read.
  virtual Result<size_t> read(char* into, size_t size) = 0;
};

}  // namespace forerun
