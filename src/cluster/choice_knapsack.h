// Picks at most one option for each of several choosers, so many GPUs of one type each, so that the sum of values is
// largest within the GPUs there are.
//
// Exact, by dynamic programming over the GPUs left of each type, in whole numbers: the answer is the same on every
// machine and depends on no solver. Of equally good picks the one is taken in which the first chooser has the earliest of
// its options that is possible, then the second, and so on; any option goes before none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace forerun::cluster {

struct KnapsackOption {
  uint32_t type = 0;
  int32_t gpus = 1;
  int64_t value = 0;  // above 0
};
using KnapsackChooser = std::vector<KnapsackOption>;  // its options, the preferred one of equals first

// A value as a whole number of millionths (2^-20): differences below do not decide.
int64_t knapsack_value(double value);
double from_knapsack_value(int64_t value);

class ChoiceKnapsack {
 public:
  // `most_steps`: choosers' options x states of the room, and tables of that size; nothing where it takes more.
  static std::optional<ChoiceKnapsack> solve(std::vector<KnapsackChooser> choosers, const std::vector<int32_t>& room,
                                             size_t most_steps);

  // By chooser: which of its options, or -1.
  [[nodiscard]] const std::vector<int>& picks() const { return picks_; }
  [[nodiscard]] int64_t total() const { return best_from_.front().back(); }
  // By chooser: the largest sum of all others, if it did not take part.
  [[nodiscard]] std::vector<int64_t> totals_without() const;

 private:
  using Sums = std::vector<int64_t>;  // by state: the largest sum within that room; a state is a mixed-radix number

  [[nodiscard]] Sums with(const KnapsackChooser& chooser, const Sums& others) const;
  [[nodiscard]] bool fits(const KnapsackOption& option, size_t state) const {
    return option.gpus <= left_[option.type][state];
  }
  [[nodiscard]] size_t without(const KnapsackOption& option, size_t state) const {
    return state - static_cast<size_t>(option.gpus) * strides_[option.type];
  }
  void pick();

  std::vector<KnapsackChooser> choosers_;   // GPUs in units that all options are multiples of
  std::vector<size_t> strides_;             // by type
  std::vector<std::vector<int32_t>> left_;  // by type and state: GPUs, in those units
  std::vector<Sums> best_from_;             // by chooser: it and all behind it; last: nobody
  std::vector<int> picks_;
};

}  // namespace forerun::cluster
