// Fuzzes what is read from Slurm and for it: the first byte picks `scontrol show job` or a table of limits, the rest is
// the text.
#include <cstdint>
#include <string>

#include "api/slurm_cluster.h"
#include "api/slurm_limits.h"
#include "base/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    for (const SlurmJob& job : parse_jobs(text)) static_cast<void>(job.over());
    return 0;
  }
  const FuzzFile file(text.data(), text.size());
  const auto limits = read_limits(file.path());
  CHECK(limits.ok() || !limits.error().what.empty(), "an error without what");
  return 0;
}
