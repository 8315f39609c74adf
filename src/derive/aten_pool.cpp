// Pooling and resampling of images.
#include "derive/aten.h"

namespace forerun::derive::aten {
Value max_pool2d(Tracer& t, const Value& x, const Shape& size, const Attributes& attributes) {
  Value y = t.fresh(x->dtype, size, suggested_strides(*x, size));
  Value indices = t.fresh(DType::int64, size, y->strides);
  Node* node = t.record("MaxPool2DWithIndicesBackward0", {x}, {y, indices});
  t.emit("aten.max_pool2d_with_indices.default", {x}, {y, indices}, attributes);
  if (node != nullptr) {
    node->backward = [&t, x, indices, attributes](Values gradients) {
      Value g = t.fresh(x->dtype, x->sizes, suggested_strides(*x, x->sizes));
      t.emit("aten.max_pool2d_with_indices_backward.default", {gradients[0], x, indices}, {g}, attributes);
      return Values{g};
    };
  }
  return y;
}

Value avg_pool2d(Tracer& t, const Value& x, const Shape& size, const Attributes& attributes) {
  Value y = t.fresh(x->dtype, size, suggested_strides(*x, size));
  Node* node = t.record("AvgPool2DBackward0", {x}, {y});
  t.emit("aten.avg_pool2d.default", {x}, {y}, attributes);
  if (node != nullptr) {
    node->backward = [&t, x, attributes](Values gradients) {
      Value g = t.fresh(x->dtype, x->sizes, suggested_strides(*x, x->sizes));
      t.emit("aten.avg_pool2d_backward.default", {gradients[0], x}, {g}, attributes);
      return Values{g};
    };
  }
  return y;
}

// To 1 x 1 PyTorch takes the mean instead.
Value adaptive_avg_pool2d(Tracer& t, const Value& x, const Shape& output) {
  if (output == Shape{1, 1}) {
    const bool channels_last = suggests_channels_last(*x);
    Value y = mean(t, x, {-1, -2}, true);
    if (channels_last) {
      const int64_t channels = x->sizes[1];
      as_strided_in_place(t, y, {channels, 1, channels, channels});
    }
    return y;
  }
  Shape sizes = x->sizes;
  sizes[sizes.size() - 2] = output[0];
  sizes[sizes.size() - 1] = output[1];
  Value y = t.fresh(x->dtype, sizes, suggested_strides(*x, sizes));
  Node* node = t.record("AdaptiveAvgPool2DBackward0", {x}, {y});
  t.emit("aten._adaptive_avg_pool2d.default", {x}, {y}, {{"output_size", output}});
  if (node != nullptr) {
    node->backward = [&t, x](Values gradients) {
      Value g = t.fresh(x->dtype, x->sizes, suggested_strides(*x, x->sizes));
      t.emit("aten._adaptive_avg_pool2d_backward.default", {gradients[0], x}, {g});
      return Values{g};
    };
  }
  return y;
}

Value upsample(Tracer& t, std::string_view name, const Value& x, const Shape& size, const Attributes& attributes) {
  Value y = t.fresh(x->dtype, size, suggested_strides(*x, size));
  Node* node = t.record("UpsampleBackward0", {x}, {y});
  t.emit(name, {x}, {y}, attributes);
  if (node != nullptr) {
    const std::string backward_name = std::string(name.substr(0, name.rfind('.'))) + "_backward.default";
    node->backward = [&t, backward_name, sizes = x->sizes, attributes, dtype = x->dtype](Values gradients) {
      Value g = t.fresh(dtype, sizes, suggested_strides(*gradients[0], sizes));
      t.emit(backward_name, {gradients[0]}, {g}, attributes);
      return Values{g};
    };
  }
  return y;
}

}  // namespace forerun::derive::aten
