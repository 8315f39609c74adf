#include "predict/job_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/options_text.h"

namespace forerun {
namespace {

constexpr const char* kLengthOptions = "--iterations, --samples, --tokens, --epochs";

int64_t whole_parts(int64_t count, int64_t of_each) {
  of_each = std::max<int64_t>(of_each, 1);
  return count / of_each + (count % of_each != 0 ? 1 : 0);
}

}  // namespace

std::string count_text(const std::string& text) {
  if (text.empty()) return text;
  const char unit = text.back();
  const double factor = unit == 'k'                  ? 1e3
                        : unit == 'M'                ? 1e6
                        : unit == 'G' || unit == 'B' ? 1e9
                        : unit == 'T'                ? 1e12
                                                     : 0;
  const auto number = factor > 0 ? number_in(text.substr(0, text.size() - 1)) : std::nullopt;
  if (!number) return text;
  const double count = *number * factor;
  const double whole = std::round(count);
  const bool is_whole = std::abs(count - whole) < 1e-6 && std::abs(whole) <= static_cast<double>(JobLength::kMost);
  return is_whole ? fmt::format("{:.0f}", whole) : text;
}

Result<int64_t> JobLength::in_iterations(const IterationInput& input) const {
  if (iterations > 0) return iterations;
  if (tokens > 0) {
    if (input.tokens_each <= 0) {
      return Error{"the model reads no tokens", "--tokens", "tell the job's length by --samples or --epochs"};
    }
    return whole_parts(whole_parts(tokens, input.tokens_each), input.samples);
  }
  if (epochs > 0) {
    return whole_parts(std::llround(std::ceil(epochs * static_cast<double>(dataset_size))), input.samples);
  }
  return whole_parts(samples, input.samples);
}

Status check_job_length(const JobLength& length) {
  const int told = (length.iterations != 0) + (length.samples != 0) + (length.tokens != 0) + (length.epochs != 0);
  if (told > 1) {
    return Error{"a job is told in iterations, samples, tokens or epochs", kLengthOptions, "give one of them"};
  }
  for (const int64_t count : {length.iterations, length.samples, length.tokens, length.dataset_size}) {
    if (count < 0 || count > JobLength::kMost) {
      return Error{"no job is so long", kLengthOptions, fmt::format("give 1 to {}", JobLength::kMost)};
    }
  }
  if ((length.epochs != 0) != (length.dataset_size != 0)) {
    return Error{"epochs and the size of the data set are told together", "--epochs, --dataset-size",
                 "as --epochs 90 --dataset-size 1.28M"};
  }
  if (!(length.epochs >= 0) ||
      length.epochs * static_cast<double>(length.dataset_size) > static_cast<double>(JobLength::kMost)) {
    return Error{"no job is so long", "--epochs, --dataset-size",
                 fmt::format("give 1 to {} samples", JobLength::kMost)};
  }
  return {};
}

std::optional<FigureRange> JobTime::cost() const {
  if (!price) return std::nullopt;
  const double an_hour = *price * static_cast<double>(gpus);
  const bool ranged = p90 > 0;
  return FigureRange{an_hour * (ranged ? p10 : hours), an_hour * hours, an_hour * (ranged ? p90 : hours)};
}

JobTime job_time(int64_t iterations, const TimeParts& iteration) {
  constexpr double kNanosecondsAnHour = 3600e9;
  JobTime job;
  job.iterations = iterations;
  job.hours = static_cast<double>(iterations) * static_cast<double>(iteration.total().value) / kNanosecondsAnHour;
  job.iteration = iteration;
  return job;
}

void set_energy(const BoardUse& use, JobTime& job) {
  if (use.power_w <= 0) return;
  const double busy = std::clamp(use.busy, 0.0, 1.0);
  const auto kwh = [&](double hours, double busy_share) {
    const double share = kWaitingShare * (1 - busy) + busy_share * busy;
    return hours * static_cast<double>(job.gpus) * use.power_w / 1e3 * share;
  };
  const bool ranged = job.p90 > 0;
  job.energy = FigureRange{kwh(ranged ? job.p10 : job.hours, kBusyLow), kwh(job.hours, kBusyShare),
                           kwh(ranged ? job.p90 : job.hours, 1)};
}

}  // namespace forerun
