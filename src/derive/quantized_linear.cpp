#include "derive/quantized_linear.h"

#include <set>

#include "derive/op_class.h"

namespace forerun::derive {
namespace {

constexpr int64_t kBlock = 64;
constexpr int64_t kNestedBlock = 256;
constexpr int64_t kNestedCodes = 256;
constexpr int64_t kCodes = 16;
constexpr double kOutliersFrom = 6;  // llm_int8_threshold

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string_view quant_type(WeightFormat format) { return format == WeightFormat::fp4 ? "fp4" : "nf4"; }

// The scales of blocks in float32, and what is held as long as they are in use.
struct Scales {
  Value scales;
  Value held;
};

Scales wide_scales(Tracer& t, const QuantizedWeight& w, bool in_place) {
  if (!w.offset) return {w.scales, nullptr};
  Value wide = t.fresh(DType::float32, w.scales->sizes);
  t.emit("bitsandbytes.dequantize_blockwise.default", {w.scales, w.nested_scales, w.nested_code}, {wide},
         {{"blocksize", kNestedBlock}});
  if (in_place) {
    t.emit("aten.add_.Tensor", {wide, w.offset}, {wide});
    return {wide, nullptr};
  }
  Value sum = t.fresh(DType::float32, wide->sizes);
  t.emit("aten.add.Tensor", {wide, w.offset}, {sum});
  return {sum, wide};
}

Value dequantized(Tracer& t, const QuantizedWeight& w, const Scales& scales) {
  Value weight = t.fresh(w.compute, {w.out, w.in});
  t.emit("bitsandbytes.dequantize_4bit.default", {w.packed, scales.scales}, {weight},
         {{"blocksize", kBlock}, {"quant_type", std::string(quant_type(w.format))}});
  return weight;
}

// One step of the backward pass, whatever runs within: its result is made after it.
class CustomFunction {
 public:
  CustomFunction(Tracer& t, std::string_view name, const Value& x)
      : t_(t), node_(t.record(name, {x}, {})), recording_(t.set_gradients(false)) {}
  ~CustomFunction() { t_.set_gradients(recording_); }
  CustomFunction(const CustomFunction&) = delete;
  CustomFunction& operator=(const CustomFunction&) = delete;

  // Null where no gradient is wanted.
  Node* give(const Value& y) {
    if (node_ == nullptr) return nullptr;
    node_->result_count = 1;
    y->history = node_;
    y->result_index = 0;
    return node_;
  }

 private:
  Tracer& t_;
  Node* node_;
  bool recording_;
};

// The rows of x in 8 bits, with the largest of each: made of float16, after a look for outliers, for which the host waits.
struct QuantizedRows {
  Value codes, scales;
};

QuantizedRows quantized_rows(Tracer& t, const Value& x) {
  const Value half = x->dtype == DType::float16 ? x : aten::to_copy(t, x, DType::float16);
  QuantizedRows rows;
  rows.scales = aten::create(t, "aten.empty.memory_format", {x->sizes[0]}, DType::float32);
  rows.codes = aten::create(t, "aten.empty.memory_format", x->sizes, DType::int8);
  Value size = aten::pointwise(t, "aten.abs.default", {half});
  const Value large = t.fresh(DType::boolean, x->sizes);
  t.emit("aten.ge.Scalar", {size}, {large}, {{"other", kOutliersFrom}});
  size = nullptr;
  const Value any = t.fresh(DType::boolean, {});
  t.emit("aten.any.default", {large}, {any});
  aten::read_on_host(t, any);
  t.emit("bitsandbytes.int8_vectorwise_quant.default", {half}, {rows.codes, rows.scales},
         {{"threshold", kOutliersFrom}});
  return rows;
}

Value scaled_product(Tracer& t, const QuantizedRows& rows, const QuantizedWeight& w, const Value& bias, DType dtype) {
  const Shape sizes = {rows.codes->sizes[0], w.out};
  const Value product = t.fresh(DType::int32, sizes);
  t.emit("bitsandbytes.int8_linear_matmul.default", {rows.codes, w.packed}, {product});
  Value y = t.fresh(DType::float16, sizes);
  const bool fused = bias && bias->dtype == DType::float16;
  t.emit("bitsandbytes.int8_mm_dequant.default", {product, rows.scales, w.scales, fused ? bias : nullptr}, {y});
  if (bias && !fused) t.emit("aten.add_.Tensor", {y, bias}, {y});
  return dtype == DType::float16 ? y : aten::to_copy(t, y, dtype);
}

Value wide_weight(Tracer& t, const QuantizedWeight& w, DType dtype) {
  Value wide = aten::to_copy(t, w.packed, dtype);
  const Value scales = aten::pointwise(t, "aten.mul.Tensor", {aten::unsqueeze(t, w.scales, 1)}, {{"other", 1.0 / 127}});
  t.emit("aten.mul_.Tensor", {wide, scales}, {wide});
  return wide;
}

}  // namespace

std::map<size_t, LinearLayer> quantized_layers(const Graph& forward) {
  std::map<size_t, LinearLayer> layers = linear_layers(forward);
  if (!layers.empty()) layers.erase(std::prev(layers.end()));
  std::set<TensorId> shared;
  for (size_t i = 0; i < forward.op_count(); ++i) {
    const Op& op = forward.ops()[i];
    const auto layer = layers.find(i);
    for (size_t k = 0; k < op.input_count; ++k) {
      const bool weight = layer != layers.end() && k == layer->second.operand + 1;
      if (!weight) shared.insert(forward.inputs(op)[k]);
    }
  }
  std::erase_if(layers, [&](const auto& entry) {
    const std::string_view name = last_part(entry.second.module);
    const TensorId weight = forward.inputs(forward.ops()[entry.first])[entry.second.operand + 1];
    return name == "gate" || name == "wo" || shared.contains(weight);
  });
  return layers;
}

void quantize_root(Tracer& t, const std::string& name, bool nested, QuantizedWeight& w) {
  const auto root = [&](Root kind, const std::string& part, DType dtype, const Shape& sizes) {
    return t.root(kind, name + part, dtype, sizes, contiguous_strides(sizes));
  };
  if (w.format == WeightFormat::int8) {
    w.packed = root(Root::parameter, "", DType::int8, {w.out, w.in});
    w.scales = root(Root::buffer, ".SCB", DType::float32, {w.out});
    return;
  }
  const int64_t count = w.out * w.in;
  const int64_t blocks = ceil_div(count, kBlock);
  w.packed = root(Root::parameter, "", DType::uint8, {ceil_div(count, 2), 1});
  w.scales = root(Root::buffer, ".absmax", nested ? DType::uint8 : DType::float32, {blocks});
  root(Root::buffer, ".quant_map", DType::float32, {kCodes});
  if (!nested) return;
  w.nested_scales = root(Root::buffer, ".nested_absmax", DType::float32, {ceil_div(blocks, kNestedBlock)});
  w.nested_code = root(Root::buffer, ".nested_quant_map", DType::float32, {kNestedCodes});
  w.offset = root(Root::buffer, ".nested_offset", DType::float32, {});
}

bool is_quantized_op(std::string_view name) {
  return name.starts_with("bitsandbytes.") && op_class(name) != OpClass::opaque;  // its optimizers are
}

Value gemm_4bit(Tracer& t, const Value& x, const QuantizedWeight& weight, const Value& bias) {
  const Scales scales = wide_scales(t, weight, false);
  return aten::linear(t, x, dequantized(t, weight, scales), bias);
}

Value linear_4bit(Tracer& t, const Value& x, const QuantizedWeight& weight, const Value& bias) {
  const Value input = x->dtype == weight.compute ? x : aten::to_copy(t, x, weight.compute);
  Value y;
  {
    CustomFunction function(t, "MatMul4Bit", input);
    y = gemm_4bit(t, input, weight, bias);
    if (Node* node = function.give(y)) {
      node->backward = [&t, weight](Values gradients) {
        const Value wide = dequantized(t, weight, wide_scales(t, weight, true));
        return Values{aten::matmul(t, gradients[0], wide)};
      };
    }
  }
  return y->dtype == x->dtype ? y : aten::to_copy(t, y, x->dtype);
}

Value linear_8bit(Tracer& t, const Value& x, const QuantizedWeight& weight, const Value& bias) {
  CustomFunction function(t, "MatMul8bitLt", x);
  const Value flat = aten::reshape(t, x, {-1, weight.in});
  const QuantizedRows rows = quantized_rows(t, flat);
  Shape sizes = x->sizes;
  sizes.back() = weight.out;
  Value y = aten::reshape(t, scaled_product(t, rows, weight, bias, x->dtype), sizes);
  if (Node* node = function.give(y)) {
    node->backward = [&t, weight, dtype = x->dtype, back = x->sizes](Values gradients) {
      const Value g = aten::reshape(t, gradients[0], {-1, weight.out});
      const Value wide = wide_weight(t, weight, dtype);
      return Values{aten::view(t, aten::mm(t, g, wide), back)};
    };
  }
  return y;
}

}  // namespace forerun::derive
