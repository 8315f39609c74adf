#include "cost/analytic/analytic.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forerun {
namespace {

double as_double(int64_t value) { return static_cast<double>(value); }
int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

bool is_depthwise(const OpWork& work) {
  return work.cls == OpClass::convolution && !work.tensor_core_eligible && work.compute_dtype != DType::float64;
}

// Elementwise work and depthwise convolutions: not done by matrix units.
bool no_product_units(const OpWork& work) { return work.gemm_count == 0 || is_depthwise(work); }

std::string_view constants_name(const OpWork& work, std::string_view base) {
  if (!is_depthwise(work)) return base;
  return is_backward(base) ? "depthwise_convolution_backward" : "depthwise_convolution";
}

double compute_seconds(const OpWork& work, const ClassConstants& c, const Device& device, Precision precision,
                       const AnalyticConstants& constants) {
  const bool simple = no_product_units(work);
  const Unit unit = device.unit_or_fallback(arithmetic_unit(work, precision));
  const double rate = device.peak.of(unit) * constants.unit_efficiency[static_cast<size_t>(unit)] * c.compute;
  if (simple) return work.flops.value / rate;
  const bool tensor =
      unit == Unit::tf32_tensor || unit == Unit::fp16_tensor || unit == Unit::bf16_tensor || unit == Unit::fp8_tensor;
  double seconds = 0;
  double products = 0;
  for (const GemmShape& gemm : work.gemms()) {
    seconds += product_seconds(gemm, tensor && !work.aligned ? rate * constants.unaligned : rate, device, constants);
    products += gemm.flops();
  }
  // Masks leave products out; gradients of attention repeat them.
  return products > 0 ? seconds * work.flops.value / products : seconds;
}

double memory_seconds(double bytes, double efficiency, const Device& device, const AnalyticConstants& constants) {
  const double cached = std::min(1.0, as_double(device.l2.value) * constants.cache_share / std::max(bytes, 1.0));
  const double bandwidth = device.memory_bandwidth * efficiency;
  return bytes * ((1 - cached) + cached / constants.cache_speedup) / bandwidth;
}

// Tensor-core convolutions work on NHWC: NCHW operands are copied, except where a 1x1 window in fp32 needs no copy.
bool copies_layout(const OpWork& work, const KernelSetting& setting) {
  if (work.cls != OpClass::convolution || setting.channels_last || !work.tensor_core_eligible) return false;
  return work.gemm_count > 0 && (work.window > 1 || size_of(work.compute_dtype) < 4);
}

int64_t foreach_kernels(const OpWork& work, const AnalyticConstants& constants) {
  // Blocks of all tensors together; each tensor has at least one.
  const int64_t elements = work.written.value / size_of(work.compute_dtype);
  const int64_t blocks = std::max(work.tensors, ceil_div(elements, constants.foreach_chunk));
  return std::max(
      {int64_t{1}, ceil_div(work.tensors, constants.foreach_tensors), ceil_div(blocks, constants.foreach_blocks)});
}

bool is_persistent(const OpWork& work, const AnalyticConstants& constants) {
  return work.steps > 0 && work.step_width <= constants.persistent_width;
}

int64_t kernel_count(const OpWork& work, const ClassConstants& c, bool layout, const AnalyticConstants& constants) {
  if (work.cls == OpClass::optimizer) return foreach_kernels(work, constants);
  double kernels = c.kernels;
  if (work.steps > 0 && !is_persistent(work, constants)) kernels += 2 * as_double(work.steps);  // product and cell
  if (work.cls == OpClass::convolution) kernels *= std::max<int>(1, work.gemm_count);
  if (work.cls == OpClass::gemm && work.gemm_count > 0) kernels *= as_double(work.gemm_table[0].repeats);  // one by one
  if (layout) kernels += constants.layout_kernels * std::max<int>(1, work.gemm_count);
  return std::llround(kernels);
}

// What does not shrink with the operands: the floor of each kernel, or of each step of a recurrent layer.
double fixed_seconds(const OpWork& work, int64_t kernels, const ClassConstants& c, const AnalyticConstants& constants) {
  if (work.steps > 0) {
    const Nanoseconds step = is_persistent(work, constants) ? constants.persistent_step : constants.step;
    return as_double(work.steps * step.value + c.fixed.value) * 1e-9;
  }
  return as_double(kernels * constants.kernel_floor.value + c.fixed.value) * 1e-9;
}

}  // namespace

Unit product_unit(const OpWork& work, Precision precision) {
  switch (work.compute_dtype) {
    case DType::float64: return Unit::fp64;
    case DType::float16: return Unit::fp16_tensor;
    case DType::bfloat16: return Unit::bf16_tensor;
    case DType::int8: return Unit::int8_tensor;
    case DType::float8_e4m3fn:
    case DType::float8_e5m2: return Unit::fp8_tensor;
    default: break;
  }
  const bool tf32 = precision == Precision::tf32 || work.cls == OpClass::convolution || work.cls == OpClass::rnn;
  return tf32 && work.tensor_core_eligible ? Unit::tf32_tensor : Unit::fp32_matrix;
}

Unit arithmetic_unit(const OpWork& work, Precision precision) {
  if (!no_product_units(work)) return product_unit(work, precision);
  return work.compute_dtype == DType::float64 ? Unit::fp64 : Unit::fp32;
}

double product_seconds(const GemmShape& gemm, double rate, const Device& device, const AnalyticConstants& constants) {
  double best = std::numeric_limits<double>::infinity();
  const double rate_of_one = rate / as_double(device.sm_count);
  for (const Tile& tile : constants.tiles) {
    const double tiles =
        as_double(gemm.batch) * as_double(ceil_div(gemm.m, tile.m)) * as_double(ceil_div(gemm.n, tile.n));
    // Few tiles with a long k are split along k until the multiprocessors are busy.
    const double room = std::floor(as_double(device.sm_count) / tiles);
    const double parts = std::max(1.0, std::min(room, as_double(gemm.k / constants.split_k_least)));
    const double waves = std::ceil(tiles * parts / as_double(device.sm_count));
    const double steps = std::ceil(as_double(gemm.k) / parts / as_double(constants.k_step));
    const double step = std::max(2.0 * as_double(tile.m * tile.n * constants.k_step) / (rate_of_one * tile.efficiency),
                                 as_double(constants.k_step_latency.value) * 1e-9);
    best = std::min(best, waves * steps * step);
  }
  return best * as_double(gemm.repeats);
}

OpCost analytic_cost(const OpWork& work, std::string_view base, const Device& device, const KernelSetting& setting,
                     const AnalyticConstants& constants) {
  if (work.cls == OpClass::view || !work.on_gpu) return {};
  const ClassConstants& c = constants.of(work.cls, constants_name(work, base));
  const double speed = setting.channels_last ? c.channels_last : 1;
  const bool layout = copies_layout(work, setting);
  const double compute = compute_seconds(work, c, device, setting.precision, constants) / speed;
  const double bytes = as_double(work.bytes().value);
  const double memory = memory_seconds(bytes * c.passes, c.memory * speed, device, constants);
  // Layout copies are kernels of their own, before and after the convolution.
  const double copying = constants.classes[static_cast<size_t>(OpClass::copy)].memory;
  const double copies = layout ? memory_seconds(bytes * constants.layout_passes, copying, device, constants) : 0;
  const int64_t kernels = kernel_count(work, c, layout, constants);
  const double latency = fixed_seconds(work, kernels, c, constants);

  OpCost cost;
  cost.kernels = static_cast<int>(std::min<int64_t>(kernels, std::numeric_limits<int>::max()));
  const double seconds = std::max(compute, memory) + copies + latency;
  cost.gpu = Nanoseconds(static_cast<int64_t>(std::llround(std::min(seconds, 9e9) * 1e9)));
  if (latency >= std::max(compute, memory + copies))
    cost.bound = Bound::latency;
  else
    cost.bound = compute >= memory + copies ? Bound::compute : Bound::memory;
  return cost;
}

bool reads_channels_last(const Graph& graph, const Op& op, const LayoutTracker& layouts) {
  const auto inputs = graph.inputs(op);
  const size_t read = is_backward(base_name(graph.name(op))) ? 2 : 1;  // the gradient and the image, or the image
  return std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(std::min(read, inputs.size())),
                     [&](TensorId input) { return layouts.of(input).channels_last; });
}

std::vector<OpCost> analytic_costs(const Graph& graph, const Device& device, const TrainingSetup& setup,
                                   const AnalyticConstants& constants) {
  std::vector<OpCost> costs;
  costs.reserve(graph.op_count());
  LayoutTracker layouts(graph, setup.channels_last);
  for (const Op& op : graph.ops()) {
    const KernelSetting setting{setup.precision, reads_channels_last(graph, op, layouts)};
    costs.push_back(analytic_cost(work_of(graph, op), base_name(graph.name(op)), device, setting, constants));
    layouts.pass(op);
  }
  return costs;
}

}  // namespace forerun
