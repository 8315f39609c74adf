// Fuzzes the table of limits that `forerun slurm limits` writes and other verbs read.
#include <cstdint>
#include <string>

#include "base/fuzz_file.h"
#include "slurm/slurm_limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  const FuzzFile file(reinterpret_cast<const char*>(data), size);
  const auto limits = read_limits(file.path());
  CHECK(limits.ok() || !limits.error().what.empty(), "an error without what");
  return 0;
}
