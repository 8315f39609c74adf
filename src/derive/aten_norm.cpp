// Batch, layer and group normalisation in their CUDA forms: batch norm through cuDNN or native.
#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

struct BatchNormOptions {
  bool training;
  double momentum;
  double eps;
};

// Gradients of x and, where there are any, of weight and bias.
Values batch_norm_gradients(Tracer& t, const Value& x, Shape strides, const Values& p) {
  Values result = {t.fresh(x->dtype, x->sizes, std::move(strides)), nullptr, nullptr};
  for (size_t i = 0; i < 2; ++i) {
    if (p[i]) result[i + 1] = t.fresh(p[i]->dtype, p[i]->sizes);
  }
  return result;
}

// Mean and inverse deviation as the forward pass saved them: nothing where it used the running ones.
Values native_backward(Tracer& t, const Value& gradient, const Value& x, const Values& p, const Values& statistics,
                       const BatchNormOptions& options) {
  Values result = batch_norm_gradients(t, x, preserved_strides(*x), p);
  const std::vector<bool> mask = {true, p[0] != nullptr, p[1] != nullptr};
  t.emit("aten.native_batch_norm_backward.default", {gradient, x, p[0], p[2], p[3], statistics[0], statistics[1]},
         result, {{"train", options.training}, {"eps", options.eps}, {"output_mask", mask}});
  return result;
}

Value cudnn_batch_norm(Tracer& t, const Value& x_in, const Values& p, const BatchNormOptions& options) {
  const Value x = to_format_of(t, x_in, x_in);
  const Shape saved = {options.training ? x->sizes[1] : 0};
  Value y = t.fresh(x->dtype, x->sizes, suggested_strides(*x, x->sizes));
  Value mean = t.fresh(p[0]->dtype, saved);
  Value variance = t.fresh(p[0]->dtype, saved);
  Value reserve = t.fresh(DType::uint8, {0});
  Node* node = t.record("CudnnBatchNormBackward0", {x, p[0], p[1]}, {y, mean, variance, reserve});
  mean->history = variance->history = nullptr;
  t.emit("aten.cudnn_batch_norm.default", {x, p[0], p[1], p[2], p[3]}, {y, mean, variance, reserve},
         {{"training", options.training}, {"exponential_average_factor", options.momentum}, {"epsilon", options.eps}});
  if (node != nullptr) {
    node->backward = [&t, x, p, mean, variance, reserve, options](Values gradients) {
      if (!options.training) return native_backward(t, gradients[0], x, p, {mean, variance}, options);
      const Value g = to_format_of(t, gradients[0], x);
      Values result = batch_norm_gradients(t, x, suggested_strides(*x, x->sizes), p);
      t.emit("aten.cudnn_batch_norm_backward.default", {x, g, p[0], p[2], p[3], mean, variance, reserve}, result,
             {{"epsilon", options.eps}});
      return result;
    };
  }
  return y;
}

Value native_batch_norm(Tracer& t, const Value& x, const Values& p, const BatchNormOptions& options) {
  const Shape saved = {options.training ? x->sizes[1] : 0};
  const Value reserve = create(t, "aten.empty.memory_format", {0}, DType::uint8);
  Value y = t.fresh(x->dtype, x->sizes, preserved_strides(*x));
  Value mean = t.fresh(DType::float32, saved);
  Value inverse_deviation = t.fresh(DType::float32, saved);
  Node* node = t.record("NativeBatchNormBackward0", {x, p[0], p[1]}, {y, mean, inverse_deviation});
  mean->history = inverse_deviation->history = nullptr;
  t.emit("aten.native_batch_norm.default", {x, p[0], p[1], p[2], p[3]}, {y, mean, inverse_deviation},
         {{"training", options.training}, {"momentum", options.momentum}, {"eps", options.eps}});
  if (node != nullptr) {
    node->backward = [&t, x, p, mean, inverse_deviation, options](Values gradients) {
      return native_backward(t, gradients[0], x, p, {mean, inverse_deviation}, options);
    };
  }
  return y;
}

}  // namespace

Value batch_norm(Tracer& t, const Value& x, const Values& parameters, const Attributes& attributes) {
  const BatchNormOptions options = {attributes.get_bool("training", true), attributes.get_double("momentum", 0.1),
                                    attributes.get_double("eps", 1e-5)};
  const BatchNormBackend backend = batch_norm_backend(x, parameters, options.training);
  if (backend == BatchNormBackend::cudnn) return cudnn_batch_norm(t, x, parameters, options);
  return native_batch_norm(t, x, parameters, options);
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
  const Value input = contiguous(t, x);
  const Shape counts = {x->sizes[0], groups};
  Value y = t.fresh(x->dtype, x->sizes);
  Value mean = t.fresh(x->dtype, counts);
  Value inverse_deviation = t.fresh(x->dtype, counts);
  Node* node = t.record("NativeGroupNormBackward0", {input, weight, bias}, {y, mean, inverse_deviation});
  const Attributes sizes = {{"N", x->sizes[0]},
                            {"C", x->sizes[1]},
                            {"HxW", element_count(x->sizes) / std::max<int64_t>(x->sizes[0] * x->sizes[1], 1)},
                            {"group", groups}};
  t.emit("aten.native_group_norm.default", {input, weight, bias}, {y, mean, inverse_deviation}, sizes);
  if (node != nullptr) {
    const Values kept = {t.save_result(mean), t.save_result(inverse_deviation)};
    node->backward = [&t, input, weight, bias, kept, sizes](Values gradients) {
      const Values statistics = {t.unpack_result(kept[0]), t.unpack_result(kept[1])};
      const Value g = contiguous(t, gradients[0]);
      Values result = {t.fresh(input->dtype, input->sizes, input->strides), t.fresh(weight->dtype, weight->sizes),
                       t.fresh(bias->dtype, bias->sizes)};
      t.emit("aten.native_group_norm_backward.default", {g, input, statistics[0], statistics[1], weight}, result,
             sizes);
      return result;
    };
  }
  return y;
}

Values weight_norm(Tracer& t, const Value& direction, const Value& length, const Attributes& attributes) {
  Value weight = t.fresh(direction->dtype, direction->sizes);
  Value norms = t.fresh(DType::float32, length->sizes);
  Node* node = t.record("WeightNormInterfaceBackward0", {direction, length}, {weight, norms});
  norms->history = nullptr;
  t.emit("aten._weight_norm_interface.default", {direction, length}, {weight, norms}, attributes);
  if (node != nullptr) {
    const Value kept = t.save_result(norms);
    node->backward = [&t, direction, length, kept, attributes](Values gradients) {
      const Value had = t.unpack_result(kept);
      Values result = {t.fresh(direction->dtype, direction->sizes), t.fresh(length->dtype, length->sizes)};
      t.emit("aten._weight_norm_interface_backward.default", {gradients[0], direction, length, had}, result,
             attributes);
      return result;
    };
  }
  return {weight, norms};
}

}  // namespace forerun::derive::aten
