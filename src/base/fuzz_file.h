// FuzzFile: bytes as a file in memory, for fuzzing readers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "base/check.h"

namespace forerun {

class FuzzFile {
 public:
  FuzzFile(const void* bytes, size_t size) : descriptor_(memfd_create("fuzz", 0)) {
    CHECK(descriptor_ >= 0, "no file in memory can be made");
    const auto* at = static_cast<const char*>(bytes);
    while (size > 0) {
      const ssize_t written = ::write(descriptor_, at, size);
      CHECK(written > 0, "the file in memory cannot be written");
      at += written;
      size -= static_cast<size_t>(written);
    }
  }
  ~FuzzFile() { ::close(descriptor_); }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace forerun
