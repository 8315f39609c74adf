#include "lab/trees/op_figures.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace forerun::learn {
namespace {

// FLOPs a microsecond by type, bytes a microsecond, and the shortest kernel: round figures of a T4.
constexpr double kFloat32 = 6e6;
constexpr double kFloat16 = 30e6;
constexpr double kFloat64 = 0.25e6;
constexpr double kBandwidth = 0.25e6;
constexpr double kShortest = 2;
constexpr double kLinearOverhead = 10;  // us that a linear layer takes however small it is
constexpr size_t kParameters = 17;      // of a convolution, the op with most

double ln(double x) { return std::log(std::max(x, 1.0)); }

// The authors' parameters of a convolution: batch, channels, height, width; channels, height, width of the output; window
// height and width; padding, stride and dilation, two each; groups; bytes an element.
void set_convolution(const OpRow& row, double element, OpFigures& out) {
  const auto& p = row.hyper;
  out.groups = std::max(static_cast<double>(p[15]), 1.0);
  out.channels_in = p[1] / out.groups;
  out.channels_out = p[4] / out.groups;
  out.m = std::max(double{p[0]} * p[5] * p[6], 1.0);
  out.n = std::max(out.channels_out, 1.0);
  out.k = std::max(out.channels_in * p[7] * p[8], 1.0);
  out.input_bytes = double{p[0]} * p[1] * p[2] * p[3] * element;
  out.output_bytes = double{p[0]} * p[4] * p[5] * p[6] * element;
  out.weight_bytes = double{p[4]} * out.channels_in * p[7] * p[8] * element;
  out.flops = 2 * out.m * out.n * out.k * out.groups;
  out.images = p[0];
  out.kernel = double{p[7]} * p[8];
  out.stride = p[11];
  out.input_places = double{p[2]} * p[3];
  out.output_places = double{p[5]} * p[6];
}

// A convolution as three products in tiles. The gradient of the weight is cut along its long side too, so that its tiles
// fill the GPU.
void set_tiled(const OpRow& row, double peak, double multiprocessors, OpFigures& out) {
  const double strides = std::max(double{row.hyper[11]}, 1.0) * std::max(double{row.hyper[12]}, 1.0);
  const double inputs = std::max(out.images * out.input_places, 1.0);
  const double backward_k = std::max(out.channels_out * std::max(out.kernel, 1.0) / strides, 1.0);
  for (size_t i = 0; i < kTiles.size(); ++i) {
    const double tile = kTiles[i];
    OpFigures::Tiled& tiled = out.tiled[i];
    const auto tiles = [&](double m, double n) { return std::ceil(m / tile) * std::ceil(n / tile) * out.groups; };
    const auto rounds = [&](double m, double n) { return std::ceil(tiles(m, n) / multiprocessors); };
    const double tile_us = 2 * tile * tile / peak;  // by unit of k
    tiled.forward = rounds(out.m, out.n);
    tiled.forward_us = tiled.forward * multiprocessors * tile_us * out.k;
    tiled.input = rounds(inputs, std::max(out.channels_in, 1.0));
    tiled.input_us = tiled.input * multiprocessors * tile_us * backward_k;
    tiled.weight = tiles(out.n, out.k);
    tiled.weight_us = tiled.weight * tile_us * out.m;
  }
}

// Bytes an element, extents of the input (to the tenth place), bytes an element, then units and features of the weight.
void set_linear(const OpRow& row, double element, OpFigures& out) {
  const auto& p = row.hyper;
  double elements = 1;
  for (size_t i = 1; i <= 5; ++i) elements *= p[i] > 0 ? p[i] : 1;
  out.k = std::max(double{p[12]}, 1.0);
  out.n = std::max(double{p[11]}, 1.0);
  out.m = std::max(elements / out.k, 1.0);
  out.input_bytes = out.m * out.k * element;
  out.output_bytes = out.m * out.n * element;
  out.weight_bytes = out.n * out.k * element;
  out.flops = row.amount(Amount::flops) > 0 ? row.amount(Amount::flops) : 2 * out.m * out.n * out.k;
}

}  // namespace

double multiprocessors_of(std::string_view device) {
  constexpr double kT4 = 40;
  constexpr double k2080Ti = 68;
  return device.find("2080") == std::string_view::npos ? kT4 : k2080Ti;
}

OpFigures figures_of(const OpRow& row, std::string_view name, double multiprocessors) {
  OpFigures out;
  const auto element = static_cast<double>(size_of(row.dtype));
  if (name == kConvolution) {
    set_convolution(row, element, out);
  } else if (name == kLinear && row.hyper[12] > 0) {
    set_linear(row, element, out);
  } else {
    for (size_t i = 1; i <= 4; ++i) out.elements *= row.hyper[i] > 0 ? row.hyper[i] : 1;
    out.flops = row.amount(Amount::flops);
  }
  const double product = out.input_bytes + out.output_bytes + out.weight_bytes;
  out.bytes = product > 0 ? product : double{row.amount(Amount::bytes_read)} + row.amount(Amount::bytes_written);
  if (out.bytes <= 0) out.bytes = 2 * out.elements * element;
  const double passes = row.phase == Phase::backward ? 2 : 1;
  const double peak = row.dtype == DType::float32 ? kFloat32 : size_of(row.dtype) == 2 ? kFloat16 : kFloat64;
  double computing = passes * out.flops / peak;
  if (out.images > 0) {
    set_tiled(row, peak, multiprocessors, out);
    const OpFigures::Tiled& tiled = out.tiled[1];
    const bool backward = row.phase == Phase::backward;
    if (out.groups == 1) computing = backward ? tiled.input_us + tiled.weight_us : tiled.forward_us;
  }
  const double moving = passes * out.bytes / kBandwidth;
  // Linear layers are learned from small ones and asked for far larger ones, so what is fixed must stand apart from what
  // grows, or the ratio of the small ones is carried over.
  const bool linear = out.images <= 0 && product > 0;
  out.roofline_us = linear ? computing + moving + kLinearOverhead : std::max({computing, moving, kShortest});
  return out;
}

void set_biases(std::span<const std::string_view> names, std::span<const Phase> phases, std::span<OpFigures> figures) {
  constexpr std::string_view kWithout[] = {"205", "213", "189"};  // batch normalization, concatenation, average pooling
  for (size_t i = 0; i < figures.size(); ++i) {
    if (figures[i].images <= 0) continue;
    const bool forward = phases[i] == Phase::forward;
    if (forward ? i + 1 >= figures.size() : i == 0) continue;
    const std::string_view beside = names[forward ? i + 1 : i - 1];
    if (std::find(std::begin(kWithout), std::end(kWithout), beside) != std::end(kWithout)) continue;
    figures[i].bias_us = (forward ? 2 : 1) * figures[i].output_bytes / kBandwidth;
  }
}

void add_figure_columns(const OpRow& row, const OpFigures& f, std::vector<float>& out) {
  const size_t before = out.size();
  const auto add = [&](double value) { out.push_back(static_cast<float>(value)); };
  add(std::log1p(std::max(double{row.amount(Amount::flops)}, 0.0)));
  add(std::log1p(std::max(double{row.amount(Amount::bytes_read)}, 0.0)));
  for (size_t i = 0; i < kParameters; ++i) add(std::log1p(std::max(double{row.hyper[i]}, 0.0)));
  for (const double value : {f.m, f.n, f.k, f.input_bytes, f.output_bytes, f.weight_bytes, f.flops, f.bytes,
                             f.roofline_us, f.groups, f.elements}) {
    add(ln(value));
  }
  add(ln(f.flops) - ln(f.bytes));
  add(std::fmod(f.channels_in, 8));
  add(std::fmod(f.channels_out, 8));
  add(std::fmod(f.channels_in, 64));
  add(ln(f.m) - ln(f.n));
  add(ln(f.n) - ln(f.k));
  if (f.images > 0) {
    const auto tiles = [](double extent, double tile) { return std::ceil(extent / tile); };
    for (const double value :
         {f.output_places, f.input_places, f.images * f.n * f.groups * f.k, f.images * f.channels_in * f.groups,
          f.images * f.n * f.groups, f.channels_in, f.kernel, f.m * f.k, tiles(f.m, 64) * tiles(f.n, 64) * f.groups,
          tiles(f.n, 64) * tiles(f.k, 64) * f.groups}) {
      add(ln(value));
    }
    add(ln(f.channels_out) - ln(f.channels_in));
    add(ln(tiles(f.m, 128) * tiles(f.n, 128) * 128 * 128) - ln(f.m) - ln(f.n));
    add(f.stride);
    add(f.groups > 1 && f.channels_in == 1 ? 1 : 0);
    for (size_t i = 0; i < kTiles.size(); ++i) {
      const OpFigures::Tiled& tiled = f.tiled[i];
      for (const double value : {tiled.forward, tiled.input, tiled.weight}) add(std::log(std::max(value, 1.0)));
      if (i == 0) continue;
      for (const double us : {tiled.forward_us, tiled.input_us, tiled.weight_us}) add(std::log(std::max(us, 1e-3)));
    }
  } else {
    out.resize(before + kFigureColumns);
  }
  CHECK(out.size() - before == kFigureColumns, "every column of an op's figures");
}

}  // namespace forerun::learn
