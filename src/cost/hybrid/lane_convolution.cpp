#include "cost/hybrid/lane_convolution.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forerun::hybrid {
namespace {

constexpr int64_t kWinogradWindow = 9;     // elements of the filter
constexpr int64_t kWinogradProducts = 36;  // of 4 x 4 results with a 3 x 3 window
constexpr double kFixedUs = 4;             // of kernels that do next to nothing, two or three of them

double as_double(int64_t value) { return static_cast<double>(value); }
double ceil_div(int64_t a, int64_t b) { return as_double(a / b + (a % b != 0 ? 1 : 0)); }

// Microseconds of a product, the cheapest tile chosen. `rate`: FLOPs per second of the whole device.
double product_us(const GemmShape& gemm, double rate, const Device& device, const LaneKernels& kernels) {
  const double multiprocessors = as_double(std::max<int64_t>(device.sm_count, 1));
  const double rate_of_one = rate / multiprocessors;
  double best = std::numeric_limits<double>::infinity();
  for (const LaneTile& tile : kernels.tiles) {
    const double tiles = as_double(gemm.batch) * ceil_div(gemm.m, tile.m) * ceil_div(gemm.n, tile.n);
    // Few tiles with a long k are split along k until the multiprocessors are busy.
    const double room = std::floor(multiprocessors / tiles);
    const double parts = std::max(1.0, std::min(room, as_double(gemm.k / kernels.split_k_least)));
    const double at_once = as_double(kernels.blocks);
    const double waves = at_once * std::ceil(tiles * parts / (multiprocessors * at_once));
    const double steps =
        std::ceil(as_double(gemm.k) / parts / as_double(kernels.k_step)) + kernels.k_before / as_double(kernels.k_step);
    const double step = 2.0 * as_double(tile.m * tile.n * kernels.k_step) / (rate_of_one * tile.efficiency);
    best = std::min(best, waves * steps * step);
  }
  return 1e6 * best * as_double(gemm.repeats);
}

// The gradient of the data is kept as a product whose results are added up to images; kernels compute it as a convolution.
GemmShape implicit_product(const RowWork& row) {
  GemmShape gemm = row.work.gemm_table[0];
  if (row.model == Model::data_gradient && row.work.window > 1 && gemm.n % row.work.window == 0) {
    gemm.n /= row.work.window;
    gemm.k *= row.work.window;
  }
  return gemm;
}

// Channels of both sides, and the products of Winograd's algorithm.
struct Winograd {
  int64_t in = 0, out = 0;
  GemmShape product;
};
std::optional<Winograd> winograd_of(const RowWork& row) {
  const int64_t squares = row.work.winograd_squares;
  if (squares == 0 || row.work.window != kWinogradWindow) return std::nullopt;
  const GemmShape& gemm = row.work.gemm_table[0];
  Winograd winograd;
  winograd.product.batch = kWinogradProducts;
  const auto shape = [&](int64_t in, int64_t out, int64_t m, int64_t n, int64_t k) {
    winograd.in = in;
    winograd.out = out;
    winograd.product.m = m;
    winograd.product.n = n;
    winograd.product.k = k;
  };
  switch (row.model) {
    case Model::convolution: {
      const int64_t in = gemm.k / kWinogradWindow;
      shape(in, gemm.n, squares, gemm.n, in);
      break;
    }
    case Model::data_gradient: {
      const int64_t in = gemm.n / kWinogradWindow;
      shape(in, gemm.k, squares, in, gemm.k);
      break;
    }
    case Model::weight_gradient: {
      const int64_t in = gemm.n / kWinogradWindow;
      shape(in, gemm.m, gemm.m, in, squares);
      break;
    }
    default: return std::nullopt;
  }
  if (winograd.in < 1 || winograd.out < 1) return std::nullopt;
  return winograd;
}

}  // namespace

std::optional<double> lane_convolution_us(const RowWork& row, const Device& measured, const Device& there,
                                          const DeviceScale& scale) {
  const LaneKernels& kernels = scale.lane_kernels;
  const auto kind = carried_as(row.model, row.unit, measured, there);
  if (kernels.tiles.empty() || row.work.gemm_count == 0 ||
      (kind != Carried::convolution && kind != Carried::gradient)) {
    return std::nullopt;
  }
  const double reach = is_reach_bound(there) && scale.bandwidth_reach > 0 ? scale.bandwidth_reach : scale.open_reach;
  const double bytes_a_us = there.memory_bandwidth * (reach > 0 ? reach : 1) / 1e6;
  const double rate = there.rate(row.unit) * kernels.efficiency;
  double products = product_us(implicit_product(row), rate, there, kernels);
  if (const auto winograd = winograd_of(row); winograd && kernels.winograd > 0) {
    const double squares = as_double(row.work.winograd_squares);
    const double channels = as_double(winograd->in + winograd->out);
    const double filters = as_double(winograd->in) * as_double(winograd->out);
    const double transformed =
        2.0 * as_double(kWinogradProducts * size_of(row.work.compute_dtype)) * (squares * channels + filters);
    const double transforms = kernels.transforms * (row.moved + transformed) / bytes_a_us;
    products = std::min(products, product_us(winograd->product, rate * kernels.winograd, there, kernels) + transforms);
  }
  const double memory = row.moved / bytes_a_us;
  return std::sqrt(std::hypot(products * products, memory * memory)) + kFixedUs;
}

}  // namespace forerun::hybrid
