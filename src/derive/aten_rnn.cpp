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

// cuDNN works time first; with batch_first a sequence that it writes is a transposed view.
Shape sequence_strides(const Shape& sizes, bool batch_first) {
  return batch_first ? Shape{sizes[2], sizes[0] * sizes[2], 1} : contiguous_strides(sizes);
}

// Gradients of x, the weights, hidden state and cell; those of the weights lie in one buffer.
Values rnn_gradients(Tracer& t, const Node& node, const RnnOperands& o, const Values& operands, Attributes attributes) {
  const Value x =
      t.fresh(o.x->dtype, o.x->sizes, sequence_strides(o.x->sizes, attributes.get_bool("batch_first", false)));
  const Value hidden = t.fresh(o.hidden->dtype, o.hidden->sizes);
  const Value cell = o.cell ? t.fresh(o.cell->dtype, o.cell->sizes) : nullptr;
  const Value flat = t.fresh(o.weights[0]->dtype, {flat_elements(o.weights)});
  Values made = {x, hidden, cell};
  Values result = {x};
  for (const Value& w : o.weights) {
    Value g = t.alias(flat, w->dtype, w->sizes, contiguous_strides(w->sizes));
    g->base = nullptr;
    made.push_back(g);
    result.push_back(g);
  }
  const size_t states = o.weights.size() + 1;
  attributes.set("output_mask", std::vector<bool>{Tracer::wanted(node, 0), Tracer::wanted(node, states),
                                                  Tracer::wanted(node, states + 1), true});
  t.emit("aten._cudnn_rnn_backward.default", operands, made, attributes);
  result.insert(result.end(), {hidden, cell});
  return result;
}

}  // namespace

// Found on PyTorch 2.11 with cuDNN 9.19, exact for every recurrent layer in data/h200 (single ops among them): what
// passes between the layers, what the layers keep (an LSTM's cells apart from its gates), and for dropout a mask of one
// bit an element, from each layer to each direction of the next; each a multiple of 32 bytes. Not measured: projections.
int64_t rnn_reserve_bytes(const RnnCall& call, int64_t batch, int64_t length, DType dtype) {
  const auto aligned = [](int64_t bytes) { return (bytes + 31) / 32 * 32; };
  const int64_t elements = batch * length * call.hidden * call.directions;  // of the result of one layer
  const int64_t layer = elements * size_of(dtype);
  int64_t bytes = 256 + aligned((call.layers - 1) * layer);
  if (call.kind == RnnKind::lstm) bytes += aligned(call.layers * layer);
  const int64_t kept = call.kind == RnnKind::lstm ? 4 : call.kind == RnnKind::gru ? 6 : 1;
  bytes += aligned(kept * call.layers * layer);
  if (call.dropout > 0) bytes += (call.layers - 1) * call.directions * aligned((elements + 7) / 8);
  return bytes;
}

Value rnn(Tracer& t, const Value& x, const Values& weights, const RnnCall& call) {
  const bool lstm = call.kind == RnnKind::lstm;
  const Shape state_sizes = {call.layers * call.directions, x->sizes[call.batch_first ? 0 : 1], call.hidden};
  const auto zeros = [&] { return create(t, "aten.zeros.default", state_sizes, x->dtype, {{"pin_memory", false}}); };
  RnnOperands operands = {.x = x, .hidden = zeros(), .cell = lstm ? zeros() : nullptr, .weights = weights, .flat = {}};
  operands.flat = flat_weights(t, weights);
  [[maybe_unused]] const Values zero_states = {operands.hidden, operands.cell};  // the module's own, held to its end
  if (call.cast_to_half) {
    CastWeights cast = cast_weights(t, weights);
    operands.flat = cast.flat;
    operands.weights = cast.parts;
    for (Value* v : {&operands.cell, &operands.hidden, &operands.x}) {
      if (*v && (*v)->dtype != DType::float16) *v = to_copy(t, *v, DType::float16);
    }
  }
  return cudnn_rnn(t, operands, call).y;
}

RnnResults cudnn_rnn(Tracer& t, const RnnOperands& o, const RnnCall& call) {
  const DType dtype = o.x->dtype;
  const int64_t batch = o.x->sizes[call.batch_first ? 0 : 1];
  const int64_t length = o.x->sizes[call.batch_first ? 1 : 0];
  Shape sizes = o.x->sizes;
  sizes[2] = (call.projected > 0 ? call.projected : call.hidden) * call.directions;
  const RnnResults results = {.y = t.fresh(dtype, sizes, sequence_strides(sizes, call.batch_first)),
                              .hidden = t.fresh(dtype, o.hidden->sizes),
                              .cell = t.fresh(dtype, o.cell ? o.cell->sizes : Shape{0})};
  const Value reserve = t.fresh(DType::uint8, {rnn_reserve_bytes(call, batch, length, dtype)});

  Values inputs = {o.x};
  inputs.insert(inputs.end(), o.weights.begin(), o.weights.end());
  Values differentiable = inputs;
  differentiable.insert(differentiable.end(), {o.hidden, o.cell});
  Node* node = t.record("CudnnRnnBackward0", differentiable, {results.y, results.hidden, results.cell, reserve});
  inputs.insert(inputs.end(), {o.flat, o.hidden, o.cell});
  const Attributes attributes = {{"weight_stride0", int64_t{call.bias ? 4 : 2}},
                                 {"mode", mode_of(call.kind)},
                                 {"hidden_size", call.hidden},
                                 {"proj_size", call.projected},
                                 {"num_layers", call.layers},
                                 {"batch_first", call.batch_first},
                                 {"dropout", call.dropout},
                                 {"train", true},
                                 {"bidirectional", call.directions == 2}};
  t.emit("aten._cudnn_rnn.default", inputs, {results.y, results.hidden, results.cell, reserve, o.flat}, attributes);
  if (node == nullptr) return results;
  const Value kept = t.save_result(results.y);
  node->backward = [&t, node, o, inputs, kept, reserve, attributes](Values gradients) {
    Values operands = inputs;
    operands.push_back(t.unpack_result(kept));
    operands.insert(operands.end(), {gradients[0], gradients[1], gradients[2], reserve});
    return rnn_gradients(t, *node, o, operands, attributes);
  };
  return results;
}

}  // namespace forerun::derive::aten
