#include "predict/job_time.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun {

int64_t JobLength::in_iterations(int64_t batch) const {
  if (iterations > 0) return iterations;
  const int64_t of_each = std::max<int64_t>(batch, 1);
  return samples / of_each + (samples % of_each != 0 ? 1 : 0);
}

Status check_job_length(const JobLength& length) {
  if (length.iterations > 0 && length.samples > 0) {
    return Error{"a job is told in iterations or in samples", "--iterations, --samples", "give one of them"};
  }
  if (std::min(length.iterations, length.samples) < 0 ||
      std::max(length.iterations, length.samples) > JobLength::kMost) {
    return Error{"no job is so long", "--iterations, --samples", fmt::format("give 1 to {}", JobLength::kMost)};
  }
  return {};
}

JobTime job_time(int64_t iterations, const TimeParts& iteration) {
  constexpr double kNanosecondsAnHour = 3600e9;
  return {.iterations = iterations,
          .hours = static_cast<double>(iterations) * static_cast<double>(iteration.total().value) / kNanosecondsAnHour,
          .iteration = iteration};
}

}  // namespace forerun
