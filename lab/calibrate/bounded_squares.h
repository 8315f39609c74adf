// Least squares with bounds: min x'Gx / 2 - r'x with x[i] >= low[i], for a positive definite G.
#pragma once

#include <cstddef>
#include <vector>

namespace forerun {

struct BoundedSquares {
  explicit BoundedSquares(size_t unknowns)
      : count(unknowns),
        gram(unknowns * unknowns, 0.0),
        right(unknowns, 0.0),
        low(unknowns, 0.0),
        unit(unknowns, 1.0) {}

  size_t count;
  std::vector<double> gram;  // row by row
  std::vector<double> right;
  std::vector<double> low;   // minus infinity: no bound
  std::vector<double> unit;  // by which it is judged whether an unknown still moves

  // An equation: the sum of row[i] x[i] is to be `value`.
  void add(const double* row, double value, double weight);
  // An unknown is to be `value`.
  void pull(size_t i, double value, double weight);
  // One coordinate at a time, which converges as the matrix is positive definite.
  [[nodiscard]] std::vector<double> solve() const;
};

}  // namespace forerun
