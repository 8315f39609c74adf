#include "derive/fp8_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace forerun::derive {
namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kExtent = 16;

// A matrix in fp8, and its transpose.
struct Fp8Pair {
  Value rows, turned;
};

// `turned`: x is the transpose of what is meant. `sum`: may be null; else gets the sum over the rows.
Fp8Pair cast_pair(Tracer& t, const Value& x, DType type, bool turned, Value* sum = nullptr) {
  const Shape sizes = turned ? Shape{x->sizes[1], x->sizes[0]} : x->sizes;
  Fp8Pair pair{t.fresh(type, sizes), t.fresh(type, {sizes[1], sizes[0]})};
  if (sum == nullptr) {
    t.emit("transformer_engine.fp8_cast_transpose.default", {x}, {pair.rows, pair.turned});
    return pair;
  }
  *sum = t.fresh(x->dtype, {sizes[1]});
  t.emit("transformer_engine.fp8_cast_transpose_dbias.default", {x}, {pair.rows, pair.turned, *sum});
  return pair;
}

Value cast_rows(Tracer& t, const Value& x, DType type) {
  Value rows = t.fresh(type, x->sizes);
  t.emit("transformer_engine.fp8_cast.default", {x}, {rows});
  return rows;
}

// a[m, k] with b[n, k].
Value product(Tracer& t, const Value& a, const Value& b, const Value& bias = nullptr) {
  Value y = t.fresh(DType::bfloat16, {a->sizes[0], b->sizes[0]});
  if (bias) {
    t.emit("transformer_engine.fp8_gemm.default", {a, b, bias}, {y});
  } else {
    t.emit("transformer_engine.fp8_gemm.default", {a, b}, {y});
  }
  return y;
}

// What a layer keeps, and how its input was shaped.
struct KeptLayer {
  Fp8Pair weight;
  Value input;  // transposed
  Shape sizes;  // of the input
  bool turned = false;
};

Values gradients_of(Tracer& t, const Node& node, const KeptLayer& kept, const Value& gradient) {
  Values result(node.next.size());
  const bool wants_weight = Tracer::wanted(node, 1);
  const bool wants_bias = result.size() > 2 && Tracer::wanted(node, 2);
  const Value g = aten::reshape(t, gradient, {-1, kept.weight.rows->sizes[0]});
  Fp8Pair cast;
  if (wants_weight || wants_bias) {
    cast = cast_pair(t, g, DType::float8_e5m2, false, wants_bias ? &result[2] : nullptr);
  } else {
    cast.rows = cast_rows(t, g, DType::float8_e5m2);
  }
  if (Tracer::wanted(node, 0)) result[0] = aten::view(t, product(t, cast.rows, kept.weight.turned), kept.sizes);
  cast.rows = nullptr;
  if (wants_weight) {
    result[1] = kept.turned ? product(t, kept.input, cast.turned) : product(t, cast.turned, kept.input);
  }
  return result;
}

}  // namespace

Result<std::map<size_t, Fp8Layer>> fp8_layers(const Graph& forward, bool with_last) {
  std::map<size_t, LinearLayer> linear = linear_layers(forward);
  if (!linear.empty() && !with_last) linear.erase(std::prev(linear.end()));
  std::set<TensorId> shared;
  for (size_t i = 0; i < forward.op_count(); ++i) {
    const auto inputs = forward.inputs(forward.ops()[i]);
    const auto layer = linear.find(i);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (layer == linear.end() || k != layer->second.operand + 1) shared.insert(inputs[k]);
    }
  }
  std::map<size_t, Fp8Layer> layers;
  for (const auto& [number, layer] : linear) {
    const Op& op = forward.ops()[number];
    const auto inputs = forward.inputs(op);
    const bool router = last_part(layer.module) == "gate" || last_part(layer.module) == "router";
    if (router || shared.contains(inputs[layer.operand + 1])) continue;
    if (layer.in % kExtent != 0 || layer.out % kExtent != 0) continue;
    const int64_t rows = forward.element_count(inputs[layer.operand]) / std::max<int64_t>(layer.in, 1);
    if (rows % kRows != 0) {
      return Error{
          fmt::format("{} has {} rows, and Transformer Engine multiplies multiples of 8 in fp8", layer.module, rows),
          "--precision amp_fp8", "choose a batch or length that is a multiple of 8, or amp_bf16"};
    }
    const bool addend = layer.operand > 0;  // addmm: its bias comes first, and its weight is [in, out]
    Fp8Layer found{.operand = layer.operand, .bias = {}, .turned = addend};
    if (addend) {
      found.bias = 0;
    } else if (op.input_count > 2) {
      found.bias = 2;
    }
    layers.emplace(number, found);
  }
  return layers;
}

Value linear_fp8(Tracer& t, const Value& x, const Value& weight, const Value& bias, bool turned) {
  Values inputs = {x, weight};
  if (bias) inputs.push_back(bias);
  Node* node = t.record("_LinearBackward", inputs, {});
  const bool recording = t.set_gradients(false);
  KeptLayer kept{.weight = {}, .input = {}, .sizes = x->sizes, .turned = turned};
  const Value flat = aten::reshape(t, x, {-1, x->sizes.back()});
  Fp8Pair input;
  if (node != nullptr && Tracer::wanted(*node, 1)) {
    input = cast_pair(t, flat, DType::float8_e4m3fn, false);
  } else {
    input.rows = cast_rows(t, flat, DType::float8_e4m3fn);
  }
  kept.weight = cast_pair(t, weight, DType::float8_e4m3fn, turned);
  const Value narrow = bias && bias->dtype != DType::bfloat16 ? aten::to_copy(t, bias, DType::bfloat16) : bias;
  Shape sizes = x->sizes;
  sizes.back() = kept.weight.rows->sizes[0];
  Value y = aten::view(t, product(t, input.rows, kept.weight.rows, narrow), sizes);
  t.set_gradients(recording);
  if (node == nullptr) return y;
  kept.input = input.turned;
  node->result_count = 1;
  node->backward = [&t, node, kept](Values gradients) { return gradients_of(t, *node, kept, gradients[0]); };
  y->history = node;
  y->result_index = 0;
  return y;
}

bool is_fp8_op(std::string_view name) { return name.starts_with("transformer_engine.fp8_"); }

}  // namespace forerun::derive
