// Linear programs, solved by COIN-OR's Clp, with one answer each.
//
// A program may have many optima, and which of them a solver ends on depends on the order of columns and on the rounding
// of the CPU. So a program has objectives in order of weight: each is made largest among the optima of those before it,
// and the last should tell all points apart (tie_weight()). The optima of an objective are those feasible points that its
// dual values allow: variables with a reduced cost stay at their bound, rows with a price stay tight. Unlike a row
// "objective >= best" that holds without a tolerance. Who takes decisions by the values rounds them first (steady()).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace forerun::cluster {

class LinearProgram {
 public:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  using Terms = std::vector<std::pair<int, double>>;  // (variable, factor); a variable once

  // Gives its number, counted from 0.
  int add_variable(double objective, double lower = 0, double upper = kUnbounded);
  // lower <= sum of factor * variable <= upper
  void add_row(double lower, double upper, Terms terms);
  // A further objective, by variable; those that are missing at the end count 0.
  void then_maximize(std::vector<double> objective) { further_.push_back(std::move(objective)); }

  [[nodiscard]] size_t variables() const { return objective_.size(); }
  // The values that make the objectives largest, one after the other; nothing where there are none or the first has no
  // bound. `shuffle` other than 0: rows and columns go to the solver in another order, which must not matter.
  [[nodiscard]] std::optional<std::vector<double>> maximize(uint64_t shuffle = 0) const;

 private:
  std::vector<double> objective_, lower_, upper_;
  std::vector<double> row_lower_, row_upper_;
  std::vector<Terms> rows_;
  std::vector<std::vector<double>> further_;
};

// Whether this machine has a solver (clp.h); without one no program may be made largest.
bool has_solver();

// To the nearest multiple of 2^-20, which takes the solver's rounding away and lets sums be exact: no fraction of small
// whole numbers lies halfway between two.
double steady(double value);

// What variable `place` of `places` counts for in a last objective: smaller places go first, and sums of few weights are
// never equal, because each has a little of its own that looks random.
double tie_weight(size_t place, size_t places);

}  // namespace forerun::cluster
