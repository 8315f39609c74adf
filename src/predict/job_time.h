// "How long will the whole job take, what does it spend its hours on, what does it draw and cost?"
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cost/time_parts.h"

namespace forerun {

// What one iteration takes in.
struct IterationInput {
  int64_t samples = 1;
  int64_t tokens_each = 0;  // of a sample; 0: the model reads no tokens
};

// How long a job is, as the user says it: in one of these. Nothing: not asked.
struct JobLength {
  int64_t iterations = 0;
  int64_t samples = 0;
  int64_t tokens = 0;
  double epochs = 0;  // passes over `dataset_size` samples
  int64_t dataset_size = 0;

  static constexpr int64_t kMost = 1'000'000'000'000'000;

  [[nodiscard]] bool any() const { return iterations > 0 || samples > 0 || tokens > 0 || epochs > 0; }
  // Whole iterations; the last one may be half empty. An Error where it is told in tokens and the model reads none.
  [[nodiscard]] Result<int64_t> in_iterations(const IterationInput& input) const;
};

// An Error where several are given, or one is out of range.
Status check_job_length(const JobLength& length);

// A count as users write it, in digits alone: "115M" gives "115000000", "1.28M" "1280000"; what is no whole number stays as
// it is, for the reader of numbers to refuse.
std::string count_text(const std::string& text);

// Between which ends a figure is expected to lie.
struct FigureRange {
  double low = 0, expected = 0, high = 0;
};

struct JobTime {
  int64_t iterations = 0;
  int64_t gpus = 1;
  double hours = 0;
  double p10 = 0, p90 = 0;            // hours, between which eight of ten such runs lie; 0: not known
  std::optional<FigureRange> energy;  // kWh that the GPUs draw; nothing: the board's power is not known
  std::optional<double> price;        // of an hour of one GPU
  TimeParts iteration;                // what one is spent on; the job is spent on the same shares

  [[nodiscard]] double gpu_hours() const { return hours * static_cast<double>(gpus); }
  // By the price; nothing: there is none. Where its hours have no range, it has none either.
  [[nodiscard]] std::optional<FigureRange> cost() const;
};

JobTime job_time(int64_t iterations, const TimeParts& iteration);

// The GPUs of a job: what a board may draw (0: not known), and the share of the time in which kernels run on it.
struct BoardUse {
  double power_w = 0;
  double busy = 1;
};

// Energy from power and use. While no kernel runs a board draws kWaitingShare of what it may, while one runs kBusyLow to all of it,
// kBusyShare expected; the range also has the hours' own. Host, network and cooling are not counted.
void set_energy(const BoardUse& use, JobTime& job);

inline constexpr double kWaitingShare = 0.17;  // 119 of an H100's 700 W, seen with memory in use and nothing running
inline constexpr double kBusyShare =
    0.8;  // an assumption, as its low end: kernels that wait for memory draw less than products
inline constexpr double kBusyLow = 0.6;

}  // namespace forerun
