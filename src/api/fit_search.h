// FitSearch: looks for the largest value of a model's setting that fits, deriving as few iterations as it can.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "api/fit_answer.h"
#include "base/work_control.h"
#include "graph/training_run.h"

namespace forerun {

class FitSearch {
 public:
  // The iteration with a value, and its memory. An Error of `build` means that the model does not take the value.
  using Build = std::function<Result<TrainingRun>(int64_t value)>;
  using Judge = std::function<FitPoint(const TrainingRun& run)>;

  // Values are smallest, smallest + step, ...; `room` is what may be allocated, for guesses. Once `work` does not go on,
  // no further value is tried and what is said of it means nothing: the caller looks at its status.
  FitSearch(Build build, Judge judge, int64_t smallest, int64_t step, Bytes room, Work& work)
      : build_(std::move(build)),
        judge_(std::move(judge)),
        smallest_(smallest),
        step_(step),
        room_(room),
        work_(&work) {}

  // Nothing where the smallest does not fit. The value fits, the next does not, and those around them are tried too. A value that fits
  // because the allocator gives segments back to go on may stand above ones that do not: then it is the largest below those.
  std::optional<int64_t> largest();
  // The same from a guess, without looking around. `other`: a value that is known already, for a line through both; 0:
  // none.
  std::optional<int64_t> largest_near(int64_t guess, int64_t other = 0);

  // What is known of a value; derives it where it is new.
  const FitPoint& at(int64_t value);
  // Why the model does not take the value; empty where it does.
  [[nodiscard]] std::string refusal(int64_t value) const;

  [[nodiscard]] bool monotone() const { return monotone_; }
  // A larger value that fits, above ones that do not; nothing where none was found.
  [[nodiscard]] std::optional<int64_t> fits_again() const { return fits_again_; }
  [[nodiscard]] int64_t graphs() const { return graphs_; }

 private:
  static constexpr int64_t kMost = int64_t{1} << 30;
  static constexpr double kMostGrowth = 64;  // of one step along a line: small values may hide what large ones take

  [[nodiscard]] int64_t on_grid(double value) const;
  [[nodiscard]] int64_t by_line(int64_t a, int64_t b);
  int64_t guess();
  void bracket(int64_t from);
  void halve();
  void look_around();
  void look_below();
  [[nodiscard]] std::optional<int64_t> failing_below();

  Build build_;
  Judge judge_;
  int64_t smallest_;
  int64_t step_;
  Bytes room_;
  Work* work_;
  std::map<int64_t, FitPoint> known_;
  std::map<int64_t, std::string> refused_;
  int64_t fits_ = 0;     // the largest known to fit
  int64_t too_big_ = 0;  // the smallest above it known not to
  bool monotone_ = true;
  std::optional<int64_t> fits_again_;
  int64_t graphs_ = 0;
};

}  // namespace forerun
