// "How long will the whole job take, and what does it spend its hours on?"
#pragma once

#include <cstdint>

#include "base/result.h"
#include "cost/time_parts.h"

namespace forerun {

// How long a job is, as the user says it: in iterations, or in samples seen (epochs times the data set). Nothing: not asked.
struct JobLength {
  int64_t iterations = 0;
  int64_t samples = 0;

  static constexpr int64_t kMost = 1'000'000'000'000'000;

  [[nodiscard]] bool any() const { return iterations > 0 || samples > 0; }
  // Whole iterations of so many samples; the last one may be half empty.
  [[nodiscard]] int64_t in_iterations(int64_t batch) const;
};

// An Error where both are given, or one is out of range.
Status check_job_length(const JobLength& length);

struct JobTime {
  int64_t iterations = 0;
  double hours = 0;
  double p10 = 0, p90 = 0;  // hours, between which eight of ten such runs lie; 0: not known
  TimeParts iteration;      // what one is spent on; the job is spent on the same shares
};

JobTime job_time(int64_t iterations, const TimeParts& iteration);

}  // namespace forerun
