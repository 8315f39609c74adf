#include "lab/calibrate/bounded_squares.h"

#include <algorithm>
#include <cmath>

namespace forerun {
namespace {

constexpr int kMostSweeps = 5000;
constexpr double kStill = 1e-9;  // in units

}  // namespace

void BoundedSquares::add(const double* row, double value, double weight) {
  for (size_t i = 0; i < count; ++i) {
    const double weighted = weight * row[i];
    right[i] += weighted * value;
    for (size_t j = 0; j < count; ++j) gram[i * count + j] += weighted * row[j];
  }
}

void BoundedSquares::pull(size_t i, double value, double weight) {
  gram[i * count + i] += weight;
  right[i] += weight * value;
}

std::vector<double> BoundedSquares::solve() const {
  std::vector<double> x(count, 0.0);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double moved = 0;
    for (size_t i = 0; i < count; ++i) {
      double gradient = right[i];
      for (size_t j = 0; j < count; ++j) gradient -= gram[i * count + j] * x[j];
      const double next = std::max(low[i], x[i] + gradient / gram[i * count + i]);
      moved = std::max(moved, std::abs(next - x[i]) / unit[i]);
      x[i] = next;
    }
    if (moved < kStill) break;
  }
  return x;
}

}  // namespace forerun
