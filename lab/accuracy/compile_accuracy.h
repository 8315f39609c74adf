// CompileAccuracy: predicted against measured iterations of compiled models, as text and JSON.
//
// Every set-up was measured twice, as it is and under torch.compile. The gain is the ratio of the compiled to the eager iteration, judged by
// the points that it is off by; its sign where it was measured to be more than 5 %. Families kept aside are those that no constant was
// fitted to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/training_run.h"

namespace forerun {

// Of one iteration.
struct PairFigures {
  double iter_ms = 0, gpu_ms = 0;
  double kernels = 0;
  double allocated = 0, reserved = 0;  // bytes, at the peak
  double reserved_kept_cache = 0;      // of a whole run whose cache is never emptied; 0: nobody looked
};

// What is predicted with what the machine's host was read to be (docs/records.md, host_us).
struct HostReadFigures {
  double eager_iter_ms = 0, iter_ms = 0;
};

struct CompileCase {
  std::string name;
  CompileMode mode = CompileMode::standard;
  bool kept_aside = false;
  PairFigures measured_eager, measured;      // compiled
  PairFigures predicted_eager, predicted;    // of a host like any other
  HostCalibration host;                      // as it was read beside the pair; may be empty
  std::optional<HostReadFigures> with_host;  // where it was
  std::string bound;                         // what is predicted to bound the compiled iteration
  double iter_low_ms = 0, iter_high_ms = 0;  // the stated ranges
  double gpu_low_ms = 0, gpu_high_ms = 0;
  double allocated_low = 0, allocated_high = 0;

  [[nodiscard]] bool host_bound() const { return measured.gpu_ms < 0.9 * measured.iter_ms; }
  [[nodiscard]] double measured_gain() const { return measured.iter_ms / measured_eager.iter_ms; }
  [[nodiscard]] double predicted_gain() const { return predicted.iter_ms / predicted_eager.iter_ms; }
  [[nodiscard]] double gain_with_host() const { return with_host->iter_ms / with_host->eager_iter_ms; }
};

struct CompileAccuracy {
  std::string data;  // what was judged on, in words
  std::vector<CompileCase> cases;
  std::vector<std::string> problems;  // set-ups that are not judged, and why

  [[nodiscard]] std::vector<CompileMode> modes() const;  // that were measured, the default first
};

struct CompileHits {
  int64_t right = 0, of = 0;
};

// Means of absolute errors: shares of what was measured; of gains, of 1 (0.05: five points).
struct CompileSummary {
  int64_t cases = 0, gpu_bound_cases = 0, kept_cache_cases = 0;
  double gpu = 0, gpu_bound = 0, host_bound = 0;  // GPU time; iterations by what bounds them
  double kernels = 0, allocated = 0, reserved = 0, reserved_kept_cache = 0, gain = 0;
  double eager = 0, eager_gpu = 0, eager_allocated = 0;  // of the eager iteration: what the compiled one begins with
  // Of those whose host was read, with that.
  int64_t host_read_cases = 0, host_read_bound_cases = 0;
  double host_read_bound = 0, host_read_gain = 0, host_read_eager = 0;
  CompileHits signs, iteration_range, gpu_range, allocated_range;
};
CompileSummary summary_of(const CompileAccuracy& accuracy, CompileMode mode, bool kept_aside);

std::string to_text(const CompileAccuracy& accuracy);
std::string to_json(const CompileAccuracy& accuracy);  // one object

}  // namespace forerun
