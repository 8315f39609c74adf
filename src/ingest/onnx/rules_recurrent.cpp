// Rules of LSTM, GRU and RNN: one layer each, as aten.lstm.input and its kin.
//
// ONNX: X [length, batch, in] (layout 0), W [directions, gates * hidden, in], R [.., hidden], B [directions, 2 *
// gates * hidden]; Y [length, directions, batch, hidden]. PyTorch: four parameters a direction, output [length,
// batch, directions * hidden]. Initial states and sequence lengths are not carried: they cost next to nothing. The
// last states are taken from the output.
#include <fmt/format.h>

#include <algorithm>

#include "ingest/onnx/rules.h"

namespace forerun::ingest {
namespace {

struct Layer {
  RnnOptions options;
  int64_t directions = 1;
  bool batch_first = false;
};

int64_t gates_of(std::string_view type) { return type == "LSTM" ? 4 : type == "GRU" ? 3 : 1; }

// The stacked shape of a weight or bias, also where it was split into parameters.
Shape stacked_shape(const Node& node, size_t input) {
  const std::vector<TensorId>* parts = node.rnn_parts(input);
  if (parts == nullptr) return node.shape(input);
  Shape shape = node.b.shape(parts->front());
  const bool bias = shape.size() == 1;
  if (bias) shape[0] += node.b.shape((*parts)[1])[0];
  shape.insert(shape.begin(), static_cast<int64_t>(parts->size()) / (bias ? 2 : 1));
  return shape;
}

std::optional<Layer> layer_of(Node& node) {
  Layer layer;
  const Shape w = stacked_shape(node, 1);
  const Shape r = stacked_shape(node, 2);
  const Shape x = node.shape(0);
  const int64_t gates = gates_of(node.type());
  layer.directions = node.text("direction", "forward") == "bidirectional" ? 2 : 1;
  const bool fits = x.size() == 3 && w.size() == 3 && r.size() == 3 && w[0] == layer.directions && r[0] == w[0] &&
                    w[1] == r[1] && r[2] >= 1 && w[1] / gates == r[2] && w[1] % gates == 0 && w[2] == x[2];
  if (!fits) {
    node.fail(
        fmt::format("input {} with weights W {} and R {} is no {}", text_of(x), text_of(w), text_of(r), node.type()));
    return std::nullopt;
  }
  if (node.has(3) && stacked_shape(node, 3) != Shape{layer.directions, 2 * w[1]}) {
    node.fail(fmt::format("bias {} does not fit weights {}", text_of(stacked_shape(node, 3)), text_of(w)));
    return std::nullopt;
  }
  layer.batch_first = node.integer("layout", 0) != 0;
  const onnx::AttributeProto* activations = node.attribute("activations");
  const bool relu = activations != nullptr && activations->strings_size() > 0 && activations->strings(0) == "Relu";
  layer.options = {.kind = node.type() == "LSTM"  ? RnnKind::lstm
                           : node.type() == "GRU" ? RnnKind::gru
                           : relu                 ? RnnKind::relu
                                                  : RnnKind::tanh,
                   .hidden = r[2],
                   .layers = 1,
                   .bidirectional = layer.directions == 2,
                   .batch_first = layer.batch_first,
                   .bias = node.has(3),
                   .dropout = 0};
  return layer;
}

// w_ih, w_hh, b_ih, b_hh of each direction; a weight that other nodes computed is taken apart.
std::vector<TensorId> weights_of(Node& node, const Layer& layer) {
  std::vector<TensorId> weights;
  for (int64_t direction = 0; direction < layer.directions; ++direction) {
    const auto at = static_cast<size_t>(direction);
    for (const size_t input : {1, 2}) {
      const std::vector<TensorId>* parts = node.rnn_parts(input);
      weights.push_back(parts != nullptr ? (*parts)[at] : node.b.select(node.in(input), 0, direction));
    }
    if (!node.has(3)) continue;
    if (const std::vector<TensorId>* parts = node.rnn_parts(3)) {
      weights.push_back((*parts)[2 * at]);
      weights.push_back((*parts)[2 * at + 1]);
    } else {
      const TensorId both = node.b.select(node.in(3), 0, direction);
      const int64_t half = node.b.extent(both, 0) / 2;
      weights.push_back(node.b.slice(both, 0, 0, half));
      weights.push_back(node.b.slice(both, 0, half, 2 * half));
    }
  }
  return weights;
}

// The hidden state after the last step (the first one, for the reverse direction): [directions, batch, hidden].
TensorId last_state(Node& node, const Layer& layer, TensorId sequence) {
  const int64_t time = layer.batch_first ? 1 : 0;
  const int64_t hidden = layer.options.hidden;
  std::vector<TensorId> states;
  for (int64_t direction = 0; direction < layer.directions; ++direction) {
    TensorId state = node.b.select(sequence, time, direction == 0 ? -1 : 0);
    if (layer.directions == 2) state = node.b.slice(state, 1, direction * hidden, (direction + 1) * hidden);
    states.push_back(node.b.unsqueeze(state, layer.batch_first ? 1 : 0));
  }
  return states.size() == 1 ? states.front() : node.b.cat(states, layer.batch_first ? 1 : 0);
}

bool recurrent(Node& node) {
  const std::optional<Layer> layer = layer_of(node);
  if (!layer) return true;
  const TensorId x = node.in(0);
  if (node.b.extent(x, layer->batch_first ? 1 : 0) < 1) {
    node.fail("the sequence is empty");
    return true;
  }
  const TensorId sequence = node.b.rnn(x, weights_of(node, *layer), layer->options);
  if (node.is_used(0)) {
    const int64_t unstacked = layer->batch_first ? 2 : 1;
    if (layer->directions == 1) {
      node.out(0, node.b.unsqueeze(sequence, unstacked));
    } else {
      Shape split = node.b.shape(sequence);
      split.back() = 2;
      split.push_back(layer->options.hidden);
      const TensorId apart = node.b.reshape(sequence, split);
      node.out(0, layer->batch_first ? apart : node.b.permute(apart, {0, 2, 1, 3}));
    }
  }
  if (node.is_used(1) || node.is_used(2)) {
    const TensorId last = last_state(node, *layer, sequence);
    node.out(1, last);
    node.out(2, last);
  }
  return true;
}

constexpr Rule kRecurrentRules[] = {
    {"GRU", recurrent, 2},
    {"LSTM", recurrent, 3},
    {"RNN", recurrent, 2},
};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRecurrentRules; }

}  // namespace forerun::ingest
