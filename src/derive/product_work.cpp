#include "derive/product_work.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace forerun {
namespace {

using Extents = std::span<const int64_t>;
using Tensors = std::span<const TensorId>;

int64_t product(Extents extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

// Whether rows of these lengths are multiples of 16 bytes.
bool rows_aligned(DType dtype, std::initializer_list<int64_t> lengths) {
  const int64_t step = std::max<int64_t>(1, 16 / size_of(dtype));
  return std::all_of(lengths.begin(), lengths.end(), [&](int64_t length) { return length % step == 0; });
}

void push(OpWork& work, const GemmShape& gemm) {
  if (gemm.repeats <= 0 || gemm.batch <= 0 || gemm.m <= 0 || gemm.n <= 0 || gemm.k <= 0) return;
  CHECK(work.gemm_count < OpWork::kMostGemms, "more products in one op than OpWork holds");
  work.gemm_table[work.gemm_count++] = gemm;
  work.flops += Flops(gemm.flops());
}

// The product of two matrices or stacks of them; `b` may be a single matrix.
GemmShape matmul_shape(Extents a, Extents b, bool b_transposed) {
  GemmShape gemm;
  if (a.empty() || b.empty()) return gemm;
  gemm.k = a.back();
  gemm.n = b.size() == 1 ? 1 : (b_transposed ? b[b.size() - 2] : b.back());
  if (a.size() == 1) {
    gemm.m = 1;
    gemm.batch = b.size() > 2 ? product(b.first(b.size() - 2)) : 1;
  } else if (b.size() <= 2) {
    gemm.m = product(a.first(a.size() - 1));
  } else {
    gemm.m = a[a.size() - 2];
    gemm.batch = std::max(product(a.first(a.size() - 2)), product(b.first(b.size() - 2)));
  }
  return gemm;
}

// The extents of a convolution as implicit GEMMs.
struct ConvolutionExtents {
  int64_t images = 0;
  int64_t pixels_in = 0;  // per image
  int64_t pixels_out = 0;
  int64_t channels_in = 0;   // per group
  int64_t channels_out = 0;  // per group
  int64_t window = 1;
  int64_t groups = 1;
};

ConvolutionExtents convolution_extents(Extents x, Extents y, Extents weight, int64_t groups, bool transposed) {
  ConvolutionExtents e;
  if (x.size() < 3 || y.size() != x.size() || weight.size() != x.size() || groups < 1) return e;
  e.images = x[0];
  e.pixels_in = product(x.subspan(2));
  e.pixels_out = product(y.subspan(2));
  e.groups = groups;
  e.channels_in = transposed ? weight[0] / groups : weight[1];
  e.channels_out = transposed ? weight[1] : weight[0] / groups;
  e.window = product(weight.subspan(2));
  return e;
}

GemmShape forward_gemm(const ConvolutionExtents& e, bool transposed) {
  // A transposed convolution is the data gradient of an ordinary one: its products run over the input's pixels.
  if (transposed) return {1, e.groups, e.images * e.pixels_in, e.channels_out * e.window, e.channels_in};
  return {1, e.groups, e.images * e.pixels_out, e.channels_out, e.channels_in * e.window};
}

GemmShape data_gradient_gemm(const ConvolutionExtents& e, bool transposed) {
  if (transposed) return {1, e.groups, e.images * e.pixels_in, e.channels_in, e.channels_out * e.window};
  return {1, e.groups, e.images * e.pixels_out, e.channels_in * e.window, e.channels_out};
}

GemmShape weight_gradient_gemm(const ConvolutionExtents& e, bool transposed) {
  const int64_t pixels = transposed ? e.pixels_in : e.pixels_out;
  const int64_t one = transposed ? e.channels_in : e.channels_out;
  const int64_t other = transposed ? e.channels_out : e.channels_in;
  return {1, e.groups, one, other * e.window, e.images * pixels};
}

int64_t winograd_squares(const Attributes& attributes, Extents y, Extents weight, int64_t groups, bool transposed) {
  constexpr int64_t kSide = 4;
  const auto ones = [&](const char* name) {
    const auto values = attributes.get_ints(name, {});
    return std::all_of(values.begin(), values.end(), [](int64_t value) { return value == 1; });
  };
  if (y.size() != 4 || weight.size() != 4 || weight[2] != 3 || weight[3] != 3) return 0;
  if (groups != 1 || transposed || !ones("stride") || !ones("dilation")) return 0;
  return y[0] * ((y[2] + kSide - 1) / kSide) * ((y[3] + kSide - 1) / kSide);
}

std::vector<bool> output_mask(const Graph& graph, const Op& op) {
  const AttributeValue* value = graph.attributes(op).find("output_mask");
  if (value != nullptr) {
    if (const auto* flags = std::get_if<std::vector<bool>>(value)) return *flags;
  }
  return {true, true, true};
}

}  // namespace

namespace {

// A product for each expert, on the rows that were routed to it: [rows, k] with [experts, k, n], or, for the gradient of the weights,
// [m, rows] with [rows, n] into [experts, m, n]. As many rows for each expert are assumed. In bfloat16 one kernel runs them all;
// in other types PyTorch calls one product after the other.
GemmShape grouped_shape(const Graph& graph, const Op& op, DType dtype) {
  const Tensors inputs = graph.inputs(op);
  const Extents a = graph.shape(inputs[0]);
  const Extents b = graph.shape(inputs[1]);
  GemmShape gemm;
  if (a.size() != 2 || (b.size() != 2 && b.size() != 3)) return matmul_shape(a, b, false);
  int64_t experts = 1;
  if (b.size() == 3) {
    experts = std::max<int64_t>(1, b[0]);
    gemm.m = (a[0] + experts - 1) / experts;
    gemm.k = a[1];
  } else {
    const Tensors outputs = graph.outputs(op);
    if (!outputs.empty() && graph.shape(outputs[0]).size() == 3)
      experts = std::max<int64_t>(1, graph.shape(outputs[0])[0]);
    gemm.m = a[0];
    gemm.k = (a[1] + experts - 1) / experts;
  }
  gemm.n = b.back();
  (dtype == DType::bfloat16 ? gemm.batch : gemm.repeats) = experts;
  return gemm;
}

}  // namespace

void add_gemm_work(const Graph& graph, const Op& op, OpWork& work) {
  const std::string_view base = base_name(graph.name(op));
  Tensors inputs = graph.inputs(op);
  // addmm(bias, a, b) and the like carry their addend first.
  const bool has_addend = base.starts_with("addmm") || base.starts_with("_addmm") || base.starts_with("baddbmm") ||
                          base.starts_with("addbmm") || base.starts_with("addmv");
  if (has_addend && inputs.size() >= 3) inputs = inputs.subspan(1);
  work.tensor_core_eligible = is_floating(work.compute_dtype) && work.compute_dtype != DType::float64;
  if (inputs.size() < 2) return;
  const GemmShape gemm = base == "_grouped_mm"
                             ? grouped_shape(graph, op, work.compute_dtype)
                             : matmul_shape(graph.shape(inputs[0]), graph.shape(inputs[1]),
                                            base == "linear" || base == "int8_linear_matmul" || base == "fp8_gemm");
  work.aligned = rows_aligned(work.compute_dtype, {gemm.n, gemm.k});
  push(work, gemm);
}

void add_convolution_work(const Graph& graph, const Op& op, OpWork& work) {
  const Tensors inputs = graph.inputs(op);
  const Tensors outputs = graph.outputs(op);
  const bool backward = is_backward(graph.name(op));
  if (inputs.size() < (backward ? 3u : 2u) || outputs.empty()) return;
  const Attributes& attributes = graph.attributes(op);
  const bool transposed =
      attributes.get_bool("transposed", false) || graph.name(op).find("transpose") != std::string::npos;
  const TensorId x = backward ? inputs[1] : inputs[0];
  const TensorId y = backward ? inputs[0] : outputs[0];
  const TensorId weight = backward ? inputs[2] : inputs[1];
  const ConvolutionExtents e = convolution_extents(graph.shape(x), graph.shape(y), graph.shape(weight),
                                                   attributes.get_int("groups", 1), transposed);
  const bool depthwise = e.groups > 1 && e.channels_in == 1 && e.channels_out == 1;
  work.tensor_core_eligible = work.compute_dtype != DType::float64 && !depthwise;
  work.window = e.window;
  work.winograd_squares =
      winograd_squares(attributes, graph.shape(y), graph.shape(weight), attributes.get_int("groups", 1), transposed);
  work.aligned = rows_aligned(work.compute_dtype, {e.channels_in, e.channels_out});
  if (!backward) {
    push(work, forward_gemm(e, transposed));
    return;
  }
  const std::vector<bool> wanted = output_mask(graph, op);
  const bool data = wanted.empty() || wanted[0];
  const bool parameters = wanted.size() < 2 || wanted[1];
  work.read = graph.bytes_of(y);
  if (data) {
    push(work, data_gradient_gemm(e, transposed));
    work.read += graph.bytes_of(weight);
  }
  if (parameters) {
    push(work, weight_gradient_gemm(e, transposed));
    work.read += graph.bytes_of(x);
  }
}

void add_attention_work(const Graph& graph, const Op& op, OpWork& work) {
  const bool backward = is_backward(graph.name(op));
  const Tensors inputs = graph.inputs(op);
  const size_t first = backward ? 1 : 0;  // gradients come first
  if (inputs.size() < first + 3) return;
  const Extents query = graph.shape(inputs[first]);
  const Extents key = graph.shape(inputs[first + 1]);
  const Extents value = graph.shape(inputs[first + 2]);
  if (query.size() < 3 || key.size() != query.size() || value.size() != query.size()) return;
  const size_t rank = query.size();
  // [batch, heads, length, width], but [batch, length, heads, width] in the ops under the scaled_dot_product ones.
  const std::string_view base = base_name(graph.name(op));
  const bool length_first = rank == 4 && (base.starts_with("_flash") || base.starts_with("_efficient"));
  const size_t length = length_first ? 1 : rank - 2;
  const int64_t batch = product(query) / std::max<int64_t>(1, query[length] * query[rank - 1]);
  const int64_t queries = query[length];
  const int64_t keys = key[length];
  // A causal mask leaves half of the products.
  const double share = graph.attributes(op).get_bool("is_causal", false) ? 0.5 : 1.0;
  work.tensor_core_eligible = work.compute_dtype != DType::float64;
  work.aligned = rows_aligned(work.compute_dtype, {query[rank - 1], value[rank - 1]});
  push(work, {1, batch, queries, keys, query[rank - 1]});
  push(work, {1, batch, queries, value[rank - 1], keys});
  // The gradient computes the scores again and four more products.
  work.flops = Flops(work.flops.value * share * (backward ? 2.5 : 1.0));
}

void add_rnn_work(const Graph& graph, const Op& op, OpWork& work) {
  const Tensors inputs = graph.inputs(op);
  if (inputs.empty()) return;
  const Attributes& attributes = graph.attributes(op);
  const Extents x = graph.shape(inputs[0]);
  const std::string_view base = base_name(graph.name(op));
  const bool backward = is_backward(base);
  const bool batch_first = attributes.get_bool("batch_first", false);
  const int64_t hidden = attributes.get_int("hidden_size", 0);
  const int64_t layers = attributes.get_int("num_layers", 1);
  const int64_t directions = attributes.get_bool("bidirectional", false) ? 2 : 1;
  const int64_t projected = attributes.get_int("proj_size", 0);
  const int64_t mode = attributes.get_int("mode", base.starts_with("lstm") ? 2 : base.starts_with("gru") ? 3 : 1);
  const int64_t gates = mode == 2 ? 4 : mode == 3 ? 3 : 1;
  if (x.size() != 3 || hidden <= 0 || layers <= 0) return;
  const int64_t batch = batch_first ? x[0] : x[1];
  const int64_t steps = batch_first ? x[1] : x[0];
  const int64_t rows = batch * steps;
  const int64_t out = projected > 0 ? projected : hidden;  // what a step hands on
  work.tensor_core_eligible = work.compute_dtype != DType::float64;
  work.aligned = rows_aligned(work.compute_dtype, {x[2], hidden, out});

  work.steps = steps * layers * directions;
  work.step_width = gates * hidden;
  const int64_t passes = backward ? 2 : 1;  // the gradient multiplies towards the data and towards the weights
  push(work, {passes * directions, 1, rows, gates * hidden, x[2]});
  push(work, {passes * directions * (layers - 1), 1, rows, gates * hidden, out * directions});
  push(work, {work.steps, 1, batch, gates * hidden, out});
  if (backward) push(work, {layers * directions, 1, gates * hidden, out, rows});
  if (projected > 0) push(work, {passes * steps * layers * directions, 1, batch, projected, hidden});
  // The output list repeats the weight buffer, which is not written.
  if (!backward && base.starts_with("_cudnn_rnn") && graph.outputs(op).size() == 5) {
    work.written -= graph.bytes_of(graph.outputs(op)[4]);
  }
}

}  // namespace forerun
