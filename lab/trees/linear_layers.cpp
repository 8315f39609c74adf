#include "lab/trees/linear_layers.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace forerun::learn {
namespace {

constexpr double kDoublesAUs = 0.25e6;  // FLOPs
constexpr double kBytesAUs = 0.25e6;
constexpr double kProductFixedUs = 10;  // of a linear layer's roofline, however small it is
constexpr double kBiasFixedUs = 3;
// Of both gradients, times the forward roofline: round figures from the T4's training traces.
constexpr double kBackward32 = 1.8;
constexpr double kBackward16 = 1.2;

bool same_layer(const OpFigures& a, const OpFigures& b) { return a.m == b.m && a.n == b.n && a.k == b.k; }

double double_product_us(double rows, double columns, double inner, double multiprocessors) {
  constexpr double kTile = 64;
  constexpr double kShortestCut = 256;  // of the inner extent
  const double tiles = std::ceil(rows / kTile) * std::ceil(columns / kTile);
  const double cuts = std::min(std::max(std::floor(multiprocessors / tiles), 1.0), std::max(inner / kShortestCut, 1.0));
  return std::ceil(tiles / multiprocessors) * multiprocessors * 2 * kTile * kTile * inner / kDoublesAUs / cuts;
}

void set_product(const OpRow& row, double multiprocessors, OpFigures& figures) {
  const double times = size_of(row.dtype) == 2 ? kBackward16 : kBackward32;
  figures.backward_us = times * (figures.roofline_us - kProductFixedUs);
  if (size_of(row.dtype) != 8) return;
  const auto product_us = [&](double rows, double columns, double inner) {
    return double_product_us(rows, columns, inner, multiprocessors);
  };
  const double moving = figures.bytes / kBytesAUs;
  const auto [m, n, k] = std::tuple(figures.m, figures.n, figures.k);
  figures.backward_us = product_us(m, k, n) + product_us(n, k, m) + 2 * moving;
  const bool backward = row.phase == Phase::backward;
  figures.roofline_us = kProductFixedUs + (backward ? figures.backward_us : product_us(m, n, k) + moving);
}

}  // namespace

void set_linear_layers(std::span<const OpRow* const> rows, std::span<const std::string_view> names,
                       double multiprocessors, std::span<OpFigures> figures) {
  bool product_before = false;  // among the ops of this layer
  for (size_t i = 0; i < figures.size(); ++i) {
    OpFigures& op = figures[i];
    if (names[i] != kLinear) continue;
    const bool follows =
        i > 0 && names[i - 1] == kLinear && rows[i - 1]->phase == rows[i]->phase && same_layer(figures[i - 1], op);
    const bool product = rows[i]->amount(Amount::flops) >= op.m * op.n * op.k;
    op.bias = !product || (follows && product_before);
    product_before = product || (follows && product_before);
    if (op.bias) {
      op.roofline_us = kBiasFixedUs + 2 * op.output_bytes / kBytesAUs;
    } else {
      set_product(*rows[i], multiprocessors, op);
    }
  }
}

}  // namespace forerun::learn
