#include "lab/calibrate/least_squares.h"

#include <algorithm>
#include <cmath>

namespace forerun::scale {
namespace {

constexpr double kDifference = 1e-3;

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

}  // namespace

std::vector<double> solve_symmetric(std::vector<double> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      if (i != j) {
        a[i * n + j] = sum / a[j * n + j];
      } else if (sum > 0) {
        a[i * n + i] = std::sqrt(sum);
      } else {
        return {};
      }
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return b;
}

Minimum least_squares(const Residuals& residuals, std::vector<double> x, int most_rounds) {
  const size_t n = x.size();
  std::vector<double> r = residuals(x);
  Minimum best{x, sum_of_squares(r), 0};
  double damping = 1e-3;
  while (best.rounds < most_rounds) {
    ++best.rounds;
    std::vector<std::vector<double>> slopes(n);
    for (size_t i = 0; i < n; ++i) {
      std::vector<double> moved = best.unknowns;
      moved[i] += kDifference;
      slopes[i] = residuals(moved);
      for (size_t k = 0; k < r.size(); ++k) slopes[i][k] = (slopes[i][k] - r[k]) / kDifference;
    }
    std::vector<double> normal(n * n);
    std::vector<double> gradient(n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < r.size(); ++k) gradient[i] -= slopes[i][k] * r[k];
      for (size_t j = 0; j < n; ++j) {
        for (size_t k = 0; k < r.size(); ++k) normal[i * n + j] += slopes[i][k] * slopes[j][k];
      }
    }
    bool better = false;
    double gain = 0;
    for (int attempt = 0; attempt < 12 && !better; ++attempt) {
      std::vector<double> damped = normal;
      for (size_t i = 0; i < n; ++i) damped[i * n + i] += damping * (normal[i * n + i] + 1e-12);
      const std::vector<double> move = solve_symmetric(damped, gradient);
      std::vector<double> moved = best.unknowns;
      for (size_t i = 0; i < move.size(); ++i) moved[i] += move[i];
      std::vector<double> there = move.empty() ? r : residuals(moved);
      const double sum = sum_of_squares(there);
      if (!move.empty() && sum < best.sum_of_squares) {
        gain = (best.sum_of_squares - sum) / best.sum_of_squares;
        best.unknowns = moved;
        best.sum_of_squares = sum;
        r = std::move(there);
        damping = std::max(damping / 10, 1e-12);
        better = true;
      } else {
        damping *= 10;
      }
    }
    if (!better || gain < 1e-8) break;
  }
  return best;
}

}  // namespace forerun::scale
