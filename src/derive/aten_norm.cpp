// Batch, layer and group normalisation in their CUDA forms: cuDNN batch norm for float32, the native one for bfloat16.
#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

Value cudnn_batch_norm(Tracer& t, const Value& x, const Values& p, double momentum, double eps) {
  const int64_t features = x->sizes[1];
  Value y = t.fresh(x->dtype, x->sizes, suggested_strides(*x, x->sizes));
  Value mean = t.fresh(p[0]->dtype, {features});
  Value variance = t.fresh(p[0]->dtype, {features});
  Value reserve = t.fresh(DType::uint8, {0});
  Node* node = t.record("CudnnBatchNormBackward0", {x, p[0], p[1]}, {y, mean, variance, reserve});
  mean->history = variance->history = nullptr;
  t.emit("aten.cudnn_batch_norm.default", {x, p[0], p[1], p[2], p[3]}, {y, mean, variance, reserve},
         {{"training", true}, {"exponential_average_factor", momentum}, {"epsilon", eps}});
  if (node != nullptr) {
    node->backward = [&t, x, p, mean, variance, reserve, eps](Values gradients) {
      const Value g = to_format_of(t, gradients[0], x);
      Values result = {t.fresh(x->dtype, x->sizes, suggested_strides(*x, x->sizes)), t.fresh(p[0]->dtype, p[0]->sizes),
                       t.fresh(p[1]->dtype, p[1]->sizes)};
      t.emit("aten.cudnn_batch_norm_backward.default", {x, g, p[0], p[2], p[3], mean, variance, reserve}, result,
             {{"epsilon", eps}});
      return result;
    };
  }
  return y;
}

Value native_batch_norm(Tracer& t, const Value& x, const Values& p, double momentum, double eps) {
  const int64_t features = x->sizes[1];
  const Value reserve = create(t, "aten.empty.memory_format", {0}, DType::uint8);
  Value y = t.fresh(x->dtype, x->sizes, preserved_strides(*x));
  Value mean = t.fresh(DType::float32, {features});
  Value inverse_deviation = t.fresh(DType::float32, {features});
  Node* node = t.record("NativeBatchNormBackward0", {x, p[0], p[1]}, {y, mean, inverse_deviation});
  mean->history = inverse_deviation->history = nullptr;
  t.emit("aten.native_batch_norm.default", {x, p[0], p[1], p[2], p[3]}, {y, mean, inverse_deviation},
         {{"training", true}, {"momentum", momentum}, {"eps", eps}});
  if (node != nullptr) {
    node->backward = [&t, x, p, mean, inverse_deviation, eps](Values gradients) {
      Values result = {t.fresh(x->dtype, x->sizes, preserved_strides(*x)), t.fresh(p[0]->dtype, p[0]->sizes),
                       t.fresh(p[1]->dtype, p[1]->sizes)};
      t.emit("aten.native_batch_norm_backward.default", {gradients[0], x, p[0], p[2], p[3], mean, inverse_deviation},
             result, {{"train", true}, {"eps", eps}, {"output_mask", std::vector<bool>{true, true, true}}});
      return result;
    };
  }
  return y;
}

}  // namespace

// parameters: weight, bias, running mean, running variance.
Value batch_norm(Tracer& t, const Value& x, const Values& parameters, const Attributes& attributes) {
  const double momentum = attributes.get_double("momentum", 0.1);
  const double eps = attributes.get_double("eps", 1e-5);
  if (x->dtype == DType::bfloat16) return native_batch_norm(t, x, parameters, momentum, eps);
  return cudnn_batch_norm(t, x, parameters, momentum, eps);
}

Value layer_norm(Tracer& t, const Value& x, const Value& weight, const Value& bias, const Attributes& attributes) {
  const Shape normalized = attributes.get_ints("normalized_shape");
  Shape outer = x->sizes;
  for (size_t i = outer.size() - normalized.size(); i < outer.size(); ++i) outer[i] = 1;
  Value y = t.fresh(x->dtype, x->sizes);
  Value mean = t.fresh(DType::float32, outer);
  Value inverse_deviation = t.fresh(DType::float32, outer);
  Node* node = t.record("NativeLayerNormBackward0", {x, weight, bias}, {y, mean, inverse_deviation});
  mean->history = inverse_deviation->history = nullptr;
  t.emit("aten.native_layer_norm.default", {x, weight, bias}, {y, mean, inverse_deviation},
         {{"normalized_shape", normalized}, {"eps", attributes.get_double("eps", 1e-5)}});
  if (node != nullptr) {
    node->backward = [&t, node, x, weight, bias, mean, inverse_deviation, normalized](Values gradients) {
      const std::vector<bool> mask = {Tracer::wanted(*node, 0), Tracer::wanted(*node, 1), Tracer::wanted(*node, 2)};
      Values result(3);
      if (mask[0]) result[0] = t.fresh(x->dtype, x->sizes);
      if (mask[1]) result[1] = t.fresh(weight->dtype, normalized);
      if (mask[2]) result[2] = t.fresh(bias->dtype, normalized);
      t.emit("aten.native_layer_norm_backward.default", {gradients[0], x, mean, inverse_deviation, weight, bias},
             result, {{"normalized_shape", normalized}, {"output_mask", mask}});
      return result;
    };
  }
  return y;
}

Value group_norm(Tracer& t, const Value& x, const Value& weight, const Value& bias, const Attributes& attributes) {
  const int64_t groups = attributes.get_int("num_groups", 1);
  const Value input = to_format_of(t, x, x);
  const Shape counts = {x->sizes[0], groups};
  Value y = t.fresh(x->dtype, x->sizes, suggested_strides(*x, x->sizes));
  Value mean = t.fresh(x->dtype, counts);
  Value inverse_deviation = t.fresh(x->dtype, counts);
  Node* node = t.record("NativeGroupNormBackward0", {input, weight, bias}, {y, mean, inverse_deviation});
  if (mean) mean->history = inverse_deviation->history = nullptr;
  const Attributes sizes = {{"N", x->sizes[0]},
                            {"C", x->sizes[1]},
                            {"HxW", element_count(x->sizes) / std::max<int64_t>(x->sizes[0] * x->sizes[1], 1)},
                            {"group", groups}};
  t.emit("aten.native_group_norm.default", {input, weight, bias}, {y, mean, inverse_deviation}, sizes);
  if (node != nullptr) {
    node->backward = [&t, input, weight, bias, mean, inverse_deviation, sizes](Values gradients) {
      const Value g = to_format_of(t, gradients[0], input);
      Values result = {t.fresh(input->dtype, input->sizes, input->strides), t.fresh(weight->dtype, weight->sizes),
                       t.fresh(bias->dtype, bias->sizes)};
      t.emit("aten.native_group_norm_backward.default", {g, input, mean, inverse_deviation, weight}, result, sizes);
      return result;
    };
  }
  return y;
}

}  // namespace forerun::derive::aten
