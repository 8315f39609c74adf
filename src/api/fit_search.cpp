#include "api/fit_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace forerun {

const FitPoint& FitSearch::at(int64_t value) {
  const auto [found, added] = known_.try_emplace(value);
  if (!added) return found->second;
  FitPoint& point = found->second;
  point.value = value;
  if (!work_->goes_on()) return point;
  ++graphs_;
  const Result<TrainingRun> run = build_(value);
  if (run) {
    point = judge_(*run);
  } else {
    refused_[value] = run.error().message();
  }
  point.value = value;
  (void)work_->advance();
  return point;
}

std::string FitSearch::refusal(int64_t value) const {
  const auto found = refused_.find(value);
  return found == refused_.end() ? "" : found->second;
}

int64_t FitSearch::on_grid(double value) const {
  const double steps = std::floor((value - static_cast<double>(smallest_)) / static_cast<double>(step_));
  const double most = std::floor(static_cast<double>(kMost - smallest_) / static_cast<double>(step_));
  return smallest_ + step_ * static_cast<int64_t>(std::clamp(steps, 0.0, most));
}

// Where a straight line through two values meets the room there is.
int64_t FitSearch::by_line(int64_t a, int64_t b) {
  const auto x = static_cast<double>(at(a).allocated.value);
  const auto y = static_cast<double>(at(b).allocated.value);
  if (y <= x) return on_grid(2.0 * static_cast<double>(b));
  const double slope = (y - x) / static_cast<double>(b - a);
  const double meets = static_cast<double>(b) + (static_cast<double>(room_.value) - y) / slope;
  return on_grid(std::min(meets, kMostGrowth * static_cast<double>(b)));
}

int64_t FitSearch::guess() {
  constexpr int kSecants = 6;
  int64_t from = smallest_;
  int64_t to = smallest_ + 8 * step_;
  if (!refusal(at(to).value).empty() || !at(to).fits) to = smallest_ + step_;
  if (!at(to).fits) return to;
  for (int i = 0; i < kSecants; ++i) {
    const int64_t next = by_line(std::min(from, to), std::max(from, to));
    if (next == to || next == from || !refusal(at(next).value).empty()) return next;
    const bool near = std::abs(next - to) * 50 <= next;
    from = to;
    to = next;
    if (near) break;
  }
  return to;
}

// From a value on in growing steps, until one fits and one above it does not.
void FitSearch::bracket(int64_t from) {
  constexpr int64_t kGrowth = 4;
  int64_t stride = step_;
  if (at(from).fits) {
    fits_ = from;
    for (too_big_ = std::min(from + stride, kMost); at(too_big_).fits && too_big_ < kMost; stride *= kGrowth) {
      fits_ = too_big_;
      too_big_ = std::min(too_big_ + stride, kMost);
    }
    return;
  }
  too_big_ = from;
  for (fits_ = std::max(smallest_, from - stride); !at(fits_).fits && fits_ > smallest_; stride *= kGrowth) {
    too_big_ = fits_;
    fits_ = std::max(smallest_, fits_ - stride);
  }
}

void FitSearch::halve() {
  while (too_big_ - fits_ > step_) {
    const int64_t middle = fits_ + (too_big_ - fits_) / step_ / 2 * step_;
    (at(middle).fits ? fits_ : too_big_) = middle;
  }
}

// Tries the values around the answer; goes on from a larger one that fits after all.
void FitSearch::look_around() {
  constexpr int kAbove = 2;
  for (int tries = 0; tries < 4; ++tries) {
    int64_t better = 0;
    for (int i = 2; i <= kAbove; ++i) {
      const int64_t value = fits_ + i * step_;
      if (value < kMost && at(value).fits) better = value;
    }
    if (better == 0) break;
    monotone_ = false;
    bracket(better);
    halve();
  }
  if (fits_ - step_ >= smallest_ && !at(fits_ - step_).fits) monotone_ = false;
}

// Of values ever further below the answer, to an eighth of it: the first that does not fit.
std::optional<int64_t> FitSearch::failing_below() {
  int64_t near = 1, far = 2;
  for (int64_t distance = near * step_; distance * 8 <= fits_ - smallest_; distance = near * step_) {
    if (!at(fits_ - distance).fits) return fits_ - distance;
    near = std::exchange(far, near + far);
  }
  return std::nullopt;
}

// Below what does not fit, where the answer gets by only since the allocator gives segments back.
void FitSearch::look_below() {
  constexpr int kMostGaps = 8;
  for (int gap = 0; gap < kMostGaps && at(fits_).retries > 0; ++gap) {
    const std::optional<int64_t> fails = failing_below();
    if (!fails || !work_->goes_on()) return;
    monotone_ = false;
    if (!fits_again_) fits_again_ = fits_;
    bracket(*fails);
    halve();
  }
}

std::optional<int64_t> FitSearch::largest() {
  if (!at(smallest_).fits) return std::nullopt;
  if (!largest_near(guess())) return std::nullopt;
  look_around();
  look_below();
  return fits_;
}

std::optional<int64_t> FitSearch::largest_near(int64_t guess, int64_t other) {
  int64_t from = on_grid(static_cast<double>(guess));
  if (other > 0 && other != from && refusal(at(from).value).empty()) {
    from = by_line(std::min(from, other), std::max(from, other));
  }
  bracket(from);
  if (!at(fits_).fits) return std::nullopt;
  halve();
  return fits_;
}

}  // namespace forerun
