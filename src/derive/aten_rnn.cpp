// Recurrent layers through cuDNN: flat weights, reserve space, and the float16 weight copies that autocast makes.
//
// Autocast casts RNNs to float16 whatever its own type is: the weights are copied into a fresh flat buffer each iteration.
#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

int64_t mode_of(RnnKind kind) {
  switch (kind) {
    case RnnKind::relu: return 0;
    case RnnKind::tanh: return 1;
    case RnnKind::lstm: return 2;
    case RnnKind::gru: return 3;
  }
  return 2;
}

// cuDNN's reserve space for the backward pass, found on PyTorch 2.11 with cuDNN 9.19: what passes between the layers and
// what each layer keeps, each a multiple of 32 bytes.
int64_t reserve_bytes(const RnnCall& call, int64_t batch, int64_t length, DType dtype) {
  const int64_t sequence = batch * length * call.hidden * size_of(dtype);
  const int64_t layers = call.layers * call.directions;
  const int64_t kept = call.kind == RnnKind::lstm ? 5 : call.kind == RnnKind::gru ? 6 : 1;
  const auto aligned = [](int64_t bytes) { return (bytes + 31) / 32 * 32; };
  return aligned((layers - 1) * sequence) + aligned(kept * layers * sequence) + 256;
}

int64_t flat_elements(const Values& weights) {
  int64_t count = 0;
  for (const Value& w : weights) count += element_count(w->sizes);
  return count;
}

// The flat buffer that holds all weights, found by pointing an empty tensor at it.
Value flat_weights(Tracer& t, const Values& weights) {
  const Value empty = create(t, "aten.empty.memory_format", {0}, weights[0]->dtype);
  const Shape sizes = {flat_elements(weights)};
  Value flat = t.alias(weights[0], weights[0]->dtype, sizes, {1});
  flat->base = nullptr;
  t.emit("aten.set_.source_Storage", {empty}, {flat});
  return flat;
}

struct CastWeights {
  Value flat;
  Values parts;  // [elements, 1] each
};

// Copies the weights into one float16 buffer, keeping the way back to each for its gradient.
CastWeights cast_weights(Tracer& t, const Values& weights) {
  CastWeights cast;
  const DType half = DType::float16;
  cast.flat = create(t, "aten.zeros.default", {flat_elements(weights)}, half);
  int64_t offset = 0;
  for (const Value& w : weights) {
    const Value empty = create(t, "aten.empty.memory_format", {0}, half);
    const int64_t count = element_count(w->sizes);
    Value part = t.alias(cast.flat, half, {count, 1}, {1, 1});
    part->base = nullptr;
    t.emit("aten.set_.source_Storage_storage_offset", {empty}, {part},
           {{"storage_offset", offset}, {"size", part->sizes}});
    cast.parts.push_back(part);
    offset += count;
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const Value& part = cast.parts[i];
    const Value source = view(t, weights[i], part->sizes);
    Node* node = t.record("torch::autograd::CopyBackwards", {source}, {part});
    t.emit("aten.copy_.default", {part, source}, {part});
    if (node != nullptr) {
      node->backward = [&t, dtype = source->dtype](Values gradients) {
        return Values{to_copy(t, gradients[0], dtype)};
      };
    }
  }
  return cast;
}

}  // namespace

Value rnn(Tracer& t, const Value& x_in, const Values& weights_in, const RnnCall& call) {
  Value x = x_in;
  const bool lstm = call.kind == RnnKind::lstm;
  const int64_t batch = x->sizes[call.batch_first ? 0 : 1];
  const int64_t length = x->sizes[call.batch_first ? 1 : 0];
  const Shape state_sizes = {call.layers * call.directions, batch, call.hidden};
  Value hidden = create(t, "aten.zeros.default", state_sizes, x->dtype, {{"pin_memory", false}});
  Value cell = lstm ? create(t, "aten.zeros.default", state_sizes, x->dtype, {{"pin_memory", false}}) : nullptr;
  Value flat = flat_weights(t, weights_in);
  Values weights = weights_in;
  if (call.cast_to_half) {
    CastWeights cast = cast_weights(t, weights_in);
    flat = cast.flat;
    weights = cast.parts;
    const auto halved = [&](const Value& v) {
      return v && v->dtype != DType::float16 ? to_copy(t, v, DType::float16) : v;
    };
    cell = halved(cell);
    hidden = halved(hidden);
    x = halved(x);
  }
  const DType dtype = x->dtype;
  Shape sizes = x->sizes;
  sizes[2] = call.hidden * call.directions;
  // cuDNN works time first; with batch_first the result is a transposed view.
  Shape strides = contiguous_strides(sizes);
  if (call.batch_first) strides = {sizes[2], sizes[0] * sizes[2], 1};
  Value y = t.fresh(dtype, sizes, strides);
  Value last_hidden = t.fresh(dtype, state_sizes);
  Value last_cell = t.fresh(dtype, lstm ? state_sizes : Shape{0});
  Value reserve = t.fresh(DType::uint8, {reserve_bytes(call, batch, length, dtype)});

  Values differentiable = {x};
  differentiable.insert(differentiable.end(), weights.begin(), weights.end());
  Node* node = t.record("CudnnRnnBackward0", differentiable, {y, last_hidden, last_cell, reserve});
  last_hidden->history = last_cell->history = nullptr;
  Values inputs = differentiable;
  inputs.push_back(flat);
  inputs.push_back(hidden);
  if (cell) inputs.push_back(cell);
  const Attributes attributes = {{"weight_stride0", int64_t{call.bias ? 4 : 2}},
                                 {"mode", mode_of(call.kind)},
                                 {"hidden_size", call.hidden},
                                 {"proj_size", int64_t{0}},
                                 {"num_layers", call.layers},
                                 {"batch_first", call.batch_first},
                                 {"dropout", call.dropout},
                                 {"train", true},
                                 {"bidirectional", call.directions == 2}};
  t.emit("aten._cudnn_rnn.default", inputs, {y, last_hidden, last_cell, reserve, flat}, attributes);
  if (node == nullptr) return y;
  const Value kept = t.save_result(y);
  node->backward = [&t, x, weights, inputs, kept, reserve, hidden, cell, attributes, flat](Values gradients) {
    const Value result = t.unpack_result(kept);
    Values operands = inputs;
    operands.push_back(result);
    operands.push_back(gradients[0]);
    operands.push_back(reserve);
    Values made = {t.fresh(x->dtype, x->sizes, preserved_strides(*x)), t.fresh(hidden->dtype, hidden->sizes)};
    if (cell) made.push_back(t.fresh(cell->dtype, cell->sizes));
    const Value flat_gradient = t.fresh(flat->dtype, flat->sizes);
    Values result_gradients = {made[0]};
    for (const Value& w : weights) {
      Value g = t.alias(flat_gradient, w->dtype, w->sizes, contiguous_strides(w->sizes));
      g->base = nullptr;
      made.push_back(g);
      result_gradients.push_back(g);
    }
    Attributes full = attributes;
    full.set("output_mask", std::vector<bool>{true, false, false, true});
    t.emit("aten._cudnn_rnn_backward.default", operands, made, full);
    return result_gradients;
  };
  return y;
}

}  // namespace forerun::derive::aten
