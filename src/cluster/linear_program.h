// Linear programs, with whole variables where asked for, solved by COIN-OR's Clp and Cbc.
//
// The only file that includes those libraries is linear_program.cpp. Solving is repeatable: branch and bound is limited
// by nodes, not by time.
#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace forerun::cluster {

class LinearProgram {
 public:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  using Terms = std::vector<std::pair<int, double>>;  // (variable, factor); a variable once

  // Gives its number, counted from 0. `whole`: integers only.
  int add_variable(double objective, double lower = 0, double upper = kUnbounded, bool whole = false);
  // lower <= sum of factor * variable <= upper
  void add_row(double lower, double upper, Terms terms);

  [[nodiscard]] size_t variables() const { return objective_.size(); }
  // The values that make the objective largest; nothing where there are none or it has no bound.
  [[nodiscard]] std::optional<std::vector<double>> maximize(int most_nodes = 2000) const;

 private:
  [[nodiscard]] bool is_whole(const std::vector<double>& values) const;

  std::vector<double> objective_, lower_, upper_;
  std::vector<bool> whole_;
  std::vector<double> row_lower_, row_upper_;
  std::vector<Terms> rows_;
};

}  // namespace forerun::cluster
