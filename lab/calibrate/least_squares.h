// Levenberg-Marquardt for a handful of unknowns: minimises the sum of squared residuals, derivatives by differences.
//
// The plain method (Marquardt 1963): normal equations with a damped diagonal, solved by Cholesky's factorization. For
// tens of unknowns and hundreds of residuals; no bounds, so callers fit logarithms.
#pragma once

#include <functional>
#include <vector>

namespace forerun::scale {

using Residuals = std::function<std::vector<double>(const std::vector<double>& unknowns)>;

struct Minimum {
  std::vector<double> unknowns;
  double sum_of_squares = 0;
  int rounds = 0;
};

Minimum least_squares(const Residuals& residuals, std::vector<double> first, int most_rounds = 60);

// Solves a x = b for a symmetric positive definite matrix, row by row; empty where it is not.
std::vector<double> solve_symmetric(std::vector<double> a, std::vector<double> b);

}  // namespace forerun::scale
