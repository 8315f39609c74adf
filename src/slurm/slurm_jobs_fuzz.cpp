// Fuzzes the reader of `squeue --json` and of hard limits in admin comments. What users write can be anything: a job that
// is read has an id, a state and a label, its name has no control characters, and a soft limit is below the hard one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "slurm/slurm_commands.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto hard = hard_limit_of(text)) {
    CHECK(*hard >= 0 && text.starts_with("forerun: predicted "), "a hard limit that job_submit.lua did not write");
  }
  const auto jobs = parse_jobs(text);
  if (!jobs.ok()) {
    CHECK(!jobs.error().what.empty() && !jobs.error().where.empty(), "an error without what or where");
    return 0;
  }
  for (const SlurmJob& job : *jobs) {
    CHECK(job.id > 0 && !job.state.empty() && !job.label.empty(), "a job without id, state or label");
    CHECK(std::none_of(job.name.begin(), job.name.end(), [](char c) { return c >= 0 && c < 0x20; }),
          "a line in a name");
    if (job.soft())
      CHECK(*job.hard_limit_min == 0 || job.limit_min < *job.hard_limit_min, "a soft limit above the hard one");
  }
  return 0;
}
