#include "lab/dataset/other_gpus/gpu_work.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "cost/analytic/analytic.h"

namespace forerun::learn {
namespace {

constexpr double kBytesOfFloat = 4;
constexpr int64_t kElementsOfBlock = 512;     // 128 threads, four elements each
constexpr int64_t kWidestWarpSoftmax = 1024;  // up to here a warp has a row of its own, and a block four warps
constexpr int64_t kWarpsOfBlock = 4;
constexpr int64_t kWinogradWindow = 9;

double as_double(int64_t value) { return static_cast<double>(value); }

bool is_batched(std::string_view base, const GemmShape& product) {
  return product.batch > 1 || base.find("bmm") != std::string_view::npos;
}

bool moves_one_by_one(const Attributes& attributes) {
  const Shape strides = attributes.get_ints("stride");
  return std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
}

std::vector<GpuWork> products_of(const Graph& graph, const Op& op, const OpWork& work, Unit unit) {
  double all = 0;
  for (const GemmShape& product : work.gemms()) all += product.flops();
  std::vector<GpuWork> parts;
  for (const GemmShape& product : work.gemms()) {
    GpuWork part{.kind = WorkKind::linear, .product = product, .window = work.window, .unit = unit};
    if (work.cls == OpClass::convolution) {
      part.kind = WorkKind::convolution;
      part.winograd = work.window == kWinogradWindow && moves_one_by_one(graph.attributes(op));
    } else if (is_batched(base_name(graph.name(op)), product)) {
      part.kind = WorkKind::batched_product;
    }
    part.rows = product.repeats * product.batch * product.m * product.n;
    part.flops = product.flops();
    part.bytes = all > 0 ? as_double(work.bytes().value) * product.flops() / all : 0;
    // Fused attention is asked about as if it were spelled out: what was timed are products that stand alone.
    if (work.cls == OpClass::attention) part.bytes = product_work(product).bytes;
    if (part.flops > 0 && part.bytes > 0) parts.push_back(part);
  }
  return parts;
}

// Elements of the largest input.
int64_t largest_input(const Graph& graph, const Op& op) {
  int64_t most = 0;
  for (const TensorId input : graph.inputs(op)) most = std::max<int64_t>(most, graph.element_count(input));
  return most;
}

// The widest last extent among the op's inputs: that of the rows.
int64_t row_width(const Graph& graph, const Op& op) {
  int64_t width = 1;
  for (const TensorId input : graph.inputs(op)) {
    const auto shape = graph.shape(input);
    if (shape.size() > 1) width = std::max(width, shape.back());
  }
  return width;
}

}  // namespace

std::string_view name_of(WorkKind kind) {
  switch (kind) {
    case WorkKind::linear: return "linear";
    case WorkKind::batched_product: return "batched product";
    case WorkKind::convolution: return "convolution";
    case WorkKind::softmax: return "softmax";
    case WorkKind::layer_norm: return "layer norm";
    case WorkKind::elementwise: return "element-wise";
  }
  return "";
}

std::vector<GpuWork> gpu_work(const Graph& graph, const Op& op, Precision precision) {
  const OpWork work = work_of(graph, op);
  if (!work.on_gpu || work.bytes().value <= 0) return {};
  if (auto products = products_of(graph, op, work, product_unit(work, precision)); !products.empty()) return products;
  GpuWork part{
      .kind = WorkKind::elementwise, .bytes = as_double(work.bytes().value), .unit = arithmetic_unit(work, precision)};
  const auto element = std::max<int64_t>(1, static_cast<int64_t>(size_of(work.compute_dtype)));
  // A reduction walks over its input, a gather only over the rows that it takes.
  const int64_t walked = std::min(largest_input(graph, op), work.read.value / element);
  part.rows = std::max({int64_t{1}, walked, work.written.value / element});
  const bool norm = base_name(graph.name(op)).find("layer_norm") != std::string_view::npos;
  if (norm || work.cls == OpClass::softmax) {
    part.kind = norm ? WorkKind::layer_norm : WorkKind::softmax;
    part.width = row_width(graph, op);
    part.rows = std::max<int64_t>(1, part.rows / part.width);
  }
  part.flops = as_double(part.rows * part.width);
  return {part};
}

GpuWork product_work(const GemmShape& product) {
  const double batch = as_double(product.repeats * product.batch);
  const auto [m, n, k] = std::tuple(as_double(product.m), as_double(product.n), as_double(product.k));
  return {.kind = product.batch > 1 ? WorkKind::batched_product : WorkKind::linear,
          .product = product,
          .rows = product.repeats * product.batch * product.m * product.n,
          .flops = product.flops(),
          .bytes = kBytesOfFloat * batch * (m * k + k * n + m * n)};
}

GpuWork row_work(WorkKind kind, int64_t rows, int64_t width, int64_t tensors) {
  GpuWork work = elementwise_work(rows * width, tensors);
  work.kind = kind;
  work.rows = rows;
  work.width = width;
  return work;
}

GpuWork elementwise_work(int64_t elements, int64_t tensors) {
  return {.kind = WorkKind::elementwise,
          .rows = elements,
          .flops = as_double(elements),
          .bytes = kBytesOfFloat * as_double(elements) * as_double(tensors)};
}

double usual_blocks(const GpuWork& work) {
  if (work.kind == WorkKind::layer_norm) return as_double(std::max<int64_t>(1, work.rows));
  if (work.kind == WorkKind::softmax) {
    const int64_t rows = work.width <= kWidestWarpSoftmax ? kWarpsOfBlock : 1;
    return std::ceil(as_double(std::max<int64_t>(1, work.rows)) / as_double(rows));
  }
  return std::ceil(as_double(std::max<int64_t>(1, work.rows)) / as_double(kElementsOfBlock));
}

}  // namespace forerun::learn
