// Convolutions and embeddings.
#include "derive/aten.h"

namespace forerun::derive::aten {

Value convolution(Tracer& t, const Value& x, const Value& weight, const Value& bias, const Attributes& attributes) {
  // The result's shape is inferred once, by the forward graph; here it follows from the same attributes.
  const bool transposed = attributes.get_bool("transposed", false);
  const int64_t groups = attributes.get_int("groups", 1);
  const Shape stride = attributes.get_ints("stride");
  const Shape padding = attributes.get_ints("padding");
  const Shape dilation = attributes.get_ints("dilation");
  const Shape output_padding = attributes.get_ints("output_padding");
  Shape sizes = {x->sizes[0], transposed ? weight->sizes[1] * groups : weight->sizes[0]};
  for (size_t i = 0; i + 2 < x->sizes.size(); ++i) {
    const int64_t reach = dilation[i] * (weight->sizes[i + 2] - 1);
    sizes.push_back(transposed ? (x->sizes[i + 2] - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i] + 1
                               : (x->sizes[i + 2] + 2 * padding[i] - reach - 1) / stride[i] + 1);
  }
  const bool channels_last = suggests_channels_last(*x) || suggests_channels_last(*weight);
  const auto layout = [channels_last](const Shape& s) {
    return channels_last && s.size() == 4 ? channels_last_strides(s) : contiguous_strides(s);
  };
  Value y = t.fresh(x->dtype, sizes, layout(sizes));
  Node* node = t.record("ConvolutionBackward0", {x, weight, bias}, {y});
  t.emit("aten.convolution.default", {x, weight, bias}, {y}, attributes);
  if (node == nullptr) return y;
  node->backward = [&t, node, x, weight, has_bias = bias != nullptr, channels = sizes[1], attributes,
                    layout](Values gs) {
    const std::vector<bool> mask = {Tracer::wanted(*node, 0), Tracer::wanted(*node, 1), Tracer::wanted(*node, 2)};
    Values result(3);
    if (mask[0]) result[0] = t.fresh(gs[0]->dtype, x->sizes, layout(x->sizes));
    if (mask[1]) result[1] = t.fresh(gs[0]->dtype, weight->sizes, layout(weight->sizes));
    if (mask[2]) result[2] = t.fresh(gs[0]->dtype, {channels});
    Attributes full = {{"bias_sizes", Shape{has_bias ? channels : 0}}};
    for (const auto& [key, value] : attributes.entries()) full.set(key, value);
    full.set("output_mask", mask);
    t.emit("aten.convolution_backward.default", {gs[0], x, weight}, result, full);
    return result;
  };
  return y;
}

Value embedding(Tracer& t, const Value& weight, const Value& indices, const Attributes& attributes) {
  Shape sizes = indices->sizes;
  sizes.push_back(weight->sizes[1]);
  const int64_t padding_index = attributes.get_int("padding_idx", -1);
  Value y = t.fresh(weight->dtype, sizes);
  Node* node = t.record("EmbeddingBackward0", {weight}, {y});
  t.emit("aten.embedding.default", {weight, indices}, {y},
         padding_index >= 0 ? Attributes{{"padding_idx", padding_index}} : Attributes{});
  if (node != nullptr) {
    node->backward = [&t, sizes = weight->sizes, indices, padding_index](Values gradients) {
      Value g = t.fresh(gradients[0]->dtype, sizes);
      t.emit("aten.embedding_dense_backward.default", {gradients[0], indices}, {g},
             {{"num_weights", sizes[0]}, {"padding_idx", padding_index}, {"scale_grad_by_freq", false}});
      return Values{g};
    };
  }
  return y;
}

Value embedding_bag(Tracer& t, const Value& weight, const Value& indices, const Value& offsets) {
  const int64_t bags = offsets->sizes[0];
  Value y = t.fresh(weight->dtype, {bags, weight->sizes[1]});
  Value offset_of_index = t.fresh(DType::int64, indices->sizes);
  Value bag_size = t.fresh(DType::int64, {bags});
  Value max_indices = t.fresh(DType::int64, {0});
  Node* node = t.record("EmbeddingBagBackward0", {weight}, {y, offset_of_index, bag_size, max_indices});
  t.emit("aten._embedding_bag.default", {weight, indices, offsets}, {y, offset_of_index, bag_size, max_indices},
         {{"scale_grad_by_freq", false}, {"mode", int64_t{0}}, {"sparse", false}});
  if (node != nullptr) {
    node->backward = [&t, sizes = weight->sizes, indices, offsets, offset_of_index, bag_size,
                      max_indices](Values gradients) {
      Value g = t.fresh(gradients[0]->dtype, sizes);
      t.emit("aten._embedding_bag_backward.default",
             {gradients[0], indices, offsets, offset_of_index, bag_size, max_indices}, {g},
             {{"num_weights", sizes[0]}, {"scale_grad_by_freq", false}, {"mode", int64_t{0}}, {"sparse", false}});
      return Values{g};
    };
  }
  return y;
}

Values opaque(Tracer& t, std::string_view name, const Values& inputs,
              const std::vector<std::pair<Shape, DType>>& results, const Attributes& attributes) {
  Values outputs;
  for (const auto& [sizes, dtype] : results) outputs.push_back(t.fresh(dtype, sizes));
  Node* node = t.record("OpaqueBackward", inputs, outputs);
  t.emit(name, inputs, outputs, attributes);
  if (node != nullptr) {
    node->backward = [&t, node, inputs, op = std::string(name)](Values gradients) {
      Values result(inputs.size());
      Values made;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!Tracer::wanted(*node, i)) continue;
        result[i] = t.fresh(inputs[i]->dtype, inputs[i]->sizes);
        made.push_back(result[i]);
      }
      Values operands = std::move(gradients);
      operands.insert(operands.end(), inputs.begin(), inputs.end());
      t.emit(op + "_backward", operands, made);
      return result;
    };
  }
  return outputs;
}

}  // namespace forerun::derive::aten
