#include "derive/generic_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "derive/aten.h"
#include "derive/quantized_linear.h"

namespace forerun::derive {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 46;  // of what an op makes inside

Error bad(std::string what) { return {std::move(what), "", "capture the model again with forerun.capture"}; }

bool within_limit(std::initializer_list<int64_t> extents) {
  int64_t product = 1;
  return std::all_of(extents.begin(), extents.end(), [&](int64_t extent) {
    return extent >= 0 && !__builtin_mul_overflow(product, std::max<int64_t>(extent, 1), &product) &&
           product <= kMostElements;
  });
}

Status expect_shape(const Value& v, const Shape& sizes, std::string_view what) {
  if (v->sizes == sizes) return {};
  return bad(fmt::format("{} is [{}], expected [{}]", what, fmt::join(v->sizes, ", "), fmt::join(sizes, ", ")));
}

// Ends the backward pass at each of these, and says where their gradients will be.
std::vector<std::shared_ptr<Value>> watched(Tracer& t, const Values& values) {
  std::vector<std::shared_ptr<Value>> slots;
  for (const Value& v : values) slots.push_back(t.watch_gradient(v));
  return slots;
}

Result<std::vector<size_t>> first_result(const Attributes& /*backward*/) { return std::vector<size_t>{0}; }

// --- aten.native_batch_norm.default: input[, weight[, bias]][, running mean, running variance] -> out, mean, deviation

// The second and third of three inputs are weight and bias, or the running statistics.
bool has_weight(const GenericCall& call) {
  if (call.inputs.size() != 3) return call.inputs.size() == 5;
  if (call.parameter_second) return true;
  const AttributeValue* mask = call.backward ? call.backward->attributes.find("output_mask") : nullptr;
  const auto* wanted = mask != nullptr ? std::get_if<std::vector<bool>>(mask) : nullptr;
  return wanted != nullptr && wanted->size() == 3 && (*wanted)[1];
}

Result<GenericForm> batch_norm_form(const GenericCall& call) {
  const size_t count = call.inputs.size();
  if (count < 1 || count > 5) return bad(fmt::format("{} inputs, expected 1 to 5", count));
  const Value& x = call.inputs[0];
  if (x->sizes.size() < 2) return bad(fmt::format("its input has {} dimensions, expected 2 or more", x->sizes.size()));
  for (size_t i = 1; i < count; ++i) {
    if (Status s = expect_shape(call.inputs[i], {x->sizes[1]}, fmt::format("input {}", i)); !s.ok()) return s.error();
  }
  Values parameters(4);
  if (count % 2 == 0) {  // a weight without a bias
    parameters[0] = call.inputs[1];
    std::copy(call.inputs.begin() + 2, call.inputs.end(), parameters.begin() + 2);
  } else {
    std::copy(call.inputs.begin() + 1, call.inputs.end(), parameters.begin() + (has_weight(call) ? 0 : 2));
  }

  GenericForm form;
  if (call.backward) {
    Values differentiable = {x, parameters[0], parameters[1]};
    const AttributeValue* mask = call.backward->attributes.find("output_mask");
    const auto* wanted = mask != nullptr ? std::get_if<std::vector<bool>>(mask) : nullptr;
    for (size_t i = 0; i < 3; ++i) {
      if (wanted != nullptr && i < wanted->size() && !(*wanted)[i]) differentiable[i] = nullptr;
    }
    std::erase(differentiable, nullptr);
    form.gradients = watched(call.tracer, differentiable);
  }
  form.results = {aten::batch_norm(call.tracer, x, parameters, call.attributes), nullptr, nullptr};
  return form;
}

// --- forerun.attention.default: query, key, value[, mask] -> out, log of the sums

Status check_attention(const Values& inputs) {
  if (inputs.size() != 3 && inputs.size() != 4) return bad(fmt::format("{} inputs, expected 3 or 4", inputs.size()));
  for (size_t i = 0; i < 3; ++i) {
    if (inputs[i]->sizes.size() != 4) return bad(fmt::format("input {} has not 4 dimensions", i));
    if (!is_floating(inputs[i]->dtype) || inputs[i]->dtype != inputs[0]->dtype) {
      return bad(fmt::format("input {} is {}, expected one floating type for all", i, name_of(inputs[i]->dtype)));
    }
  }
  const Shape& q = inputs[0]->sizes;
  const Shape& k = inputs[1]->sizes;
  if (Status s = expect_shape(inputs[1], {q[0], k[1], k[2], q[3]}, "the key"); !s.ok()) return s;
  if (Status s = expect_shape(inputs[2], {q[0], k[1], k[2], inputs[2]->sizes[3]}, "the value"); !s.ok()) return s;
  if (k[1] < 1 || q[1] % k[1] != 0) return bad(fmt::format("{} query heads do not share {} key heads", q[1], k[1]));
  if (!within_limit({q[0], q[1], q[2], k[2]}) || !within_limit({q[0], q[1], std::max(q[2], k[2]), q[3]}) ||
      !within_limit({q[0], q[1], std::max(q[2], k[2]), inputs[2]->sizes[3]})) {
    return bad("its scores are too many");
  }
  if (inputs.size() == 3) return {};
  const Shape& mask = inputs[3]->sizes;
  const Shape scores = {q[0], q[1], q[2], k[2]};
  bool fits = mask.size() <= 4;
  for (size_t i = 0; fits && i < mask.size(); ++i) fits = mask[i] == 1 || mask[i] == scores[4 - mask.size() + i];
  if (!fits) return bad(fmt::format("a mask of [{}] does not fit the scores", fmt::join(mask, ", ")));
  return {};
}

Result<GenericForm> attention_form(const GenericCall& call) {
  if (Status status = check_attention(call.inputs); !status.ok()) return status.error();
  const Value mask = call.inputs.size() > 3 ? call.inputs[3] : nullptr;
  GenericForm form;
  if (call.backward) {
    if (call.backward->output_count > call.inputs.size())
      return bad("its backward op gives more gradients than it has inputs");
    const auto last = call.inputs.begin() + static_cast<int64_t>(call.backward->output_count);
    form.gradients = watched(call.tracer, Values(call.inputs.begin(), last));
  }
  aten::AttentionCall made{call.inputs[0], call.inputs[1], call.inputs[2], mask, call.attributes};
  if (call.target.traced_masks) made = aten::traced_attention(call.tracer, std::move(made));
  const AttentionBackend backend =
      attention_backend(call.target, {made.query, made.key, made.value, made.mask},
                        made.attributes.get_bool("enable_gqa", false), made.attributes.get_bool("is_causal", false));
  Attributes attributes;
  for (const auto& [name, value] : made.attributes.entries()) {
    const bool math = backend == AttentionBackend::math && name == "enable_gqa";
    if (math || (name != "enable_gqa" && name != "mask_gradient")) attributes.set(name, value);
  }
  form.results = {aten::attention(call.tracer, backend, made.query, made.key, made.value, made.mask, attributes),
                  nullptr};
  return form;
}

// --- forerun.rnn.default: input, hidden[, cell], weights... -> out, hidden[, cell], reserve

constexpr std::array<std::pair<std::string_view, RnnKind>, 4> kModes = {
    {{"relu", RnnKind::relu}, {"tanh", RnnKind::tanh}, {"lstm", RnnKind::lstm}, {"gru", RnnKind::gru}}};

Result<aten::RnnCall> rnn_call(const Attributes& attributes) {
  constexpr int64_t kMostLayers = 1 << 16;
  constexpr int64_t kWidest = int64_t{1} << 31;
  const std::string mode = attributes.get_string("mode");
  const auto* known = std::find_if(kModes.begin(), kModes.end(), [&](const auto& row) { return row.first == mode; });
  if (known == kModes.end()) return bad(fmt::format("mode is \"{}\"; known: lstm, gru, tanh, relu", mode));
  const aten::RnnCall call = {.kind = known->second,
                              .hidden = attributes.get_int("hidden", 0),
                              .layers = attributes.get_int("layers", 0),
                              .directions = attributes.get_bool("bidirectional", false) ? 2 : 1,
                              .bias = attributes.get_bool("has_biases", true),
                              .batch_first = attributes.get_bool("batch_first", false),
                              .dropout = attributes.get_double("dropout", 0),
                              .projected = attributes.get_int("proj_size", 0)};
  if (call.layers < 1 || call.layers > kMostLayers || call.hidden < 1 || call.hidden > kWidest || call.projected < 0 ||
      call.projected > call.hidden) {
    return bad(fmt::format("{} layers of width {}, projected to {}", call.layers, call.hidden, call.projected));
  }
  return call;
}

Result<aten::RnnOperands> rnn_operands(const GenericCall& call, const aten::RnnCall& rnn) {
  const bool lstm = rnn.kind == RnnKind::lstm;
  const size_t states = lstm ? 2 : 1;
  const auto weights =
      static_cast<size_t>(rnn.layers * rnn.directions * ((rnn.bias ? 4 : 2) + (rnn.projected > 0 ? 1 : 0)));
  if (call.inputs.size() != 1 + states + weights) {
    return bad(fmt::format("{} inputs, expected {}", call.inputs.size(), 1 + states + weights));
  }
  aten::RnnOperands operands = {
      .x = call.inputs[0],
      .hidden = call.inputs[1],
      .cell = lstm ? call.inputs[2] : nullptr,
      .weights = Values(call.inputs.begin() + 1 + static_cast<int64_t>(states), call.inputs.end()),
      .flat = nullptr};
  const Shape& x = operands.x->sizes;
  if (x.size() != 3) return bad(fmt::format("its input has {} dimensions, expected 3", x.size()));
  const int64_t width = rnn.projected > 0 ? rnn.projected : rnn.hidden;
  const int64_t layers = rnn.layers * rnn.directions;
  const int64_t batch = x[rnn.batch_first ? 0 : 1];
  if (!within_limit({x[0], x[1], rnn.hidden, 8 * layers})) return bad("its results are too large");
  if (Status s = expect_shape(operands.hidden, {layers, batch, width}, "the hidden state"); !s.ok()) return s.error();
  if (lstm) {
    if (Status s = expect_shape(operands.cell, {layers, batch, rnn.hidden}, "the cell"); !s.ok()) return s.error();
  }
  int64_t elements = 0;
  bool together = true;
  for (const Value& w : operands.weights) {
    if (w->dtype != operands.weights[0]->dtype) return bad("its weights are of several types");
    elements += element_count(w->sizes);
    if (elements > kMostElements) return bad("its weights are too large");
    together = together && w->storage == operands.weights[0]->storage;
  }
  if (together) {
    operands.flat = call.tracer.view_of(operands.weights[0]->storage, operands.weights[0]->dtype, {elements}, {1});
  }
  return operands;
}

Result<GenericForm> rnn_form(const GenericCall& call) {
  const Result<aten::RnnCall> rnn = rnn_call(call.attributes);
  if (!rnn) return rnn.error();
  const Result<aten::RnnOperands> operands = rnn_operands(call, *rnn);
  if (!operands) return operands.error();
  GenericForm form;
  if (call.backward) form.gradients = watched(call.tracer, call.inputs);
  const aten::RnnResults results = aten::cudnn_rnn(call.tracer, *operands, *rnn);
  form.results = {results.y, results.hidden};
  if (operands->cell) form.results.push_back(results.cell);
  form.results.push_back(nullptr);
  return form;
}

// "given": for out, hidden and cell, whether the backward op has a gradient of it.
Result<std::vector<size_t>> rnn_seeds(const Attributes& backward) {
  const AttributeValue* value = backward.find("given");
  if (value == nullptr) return std::vector<size_t>{0};
  const auto* given = std::get_if<std::vector<bool>>(value);
  if (given == nullptr || given->size() > 3) return bad("\"given\" is not a list of up to three booleans");
  std::vector<size_t> seeds;
  for (size_t i = 0; i < given->size(); ++i) {
    if ((*given)[i]) seeds.push_back(i);
  }
  return seeds;
}

// --- bitsandbytes.gemm_4bit.default: x, packed weight, scales[, bias][, scales of 8 bits, their code, their offset] -> out

Result<GenericForm> gemm_4bit_form(const GenericCall& call) {
  const Values& inputs = call.inputs;
  const size_t count = inputs.size();
  if (count != 3 && count != 4 && count != 6 && count != 7) {
    return bad(fmt::format("{} inputs, expected 3, 4, 6 or 7", count));
  }
  const Shape shape = call.attributes.get_ints("shapeB");
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || !within_limit({shape[0], shape[1]})) {
    return bad(fmt::format("shapeB is [{}], expected the two extents of a weight", fmt::join(shape, ", ")));
  }
  const Value& x = inputs[0];
  if (x->sizes.empty() || x->sizes.back() != shape[1] || !is_floating(x->dtype)) {
    return bad(fmt::format("its input is [{}], expected numbers with {} in the last place", fmt::join(x->sizes, ", "),
                           shape[1]));
  }
  if (!within_limit({element_count(x->sizes) / shape[1], shape[0]})) return bad("its result is too large");
  const bool nested = count >= 6;
  const Value bias = count % 3 == 1 ? inputs[3] : nullptr;
  if (bias) {
    if (Status s = expect_shape(bias, {shape[0]}, "the bias"); !s.ok()) return s.error();
  }
  QuantizedWeight weight{
      .format = call.attributes.get_string("quant_type") == "fp4" ? WeightFormat::fp4 : WeightFormat::nf4,
      .compute = x->dtype,
      .out = shape[0],
      .in = shape[1],
      .packed = inputs[1],
      .scales = nested ? inputs[count - 3] : inputs[2]};
  if (nested) {
    weight.nested_scales = inputs[2];
    weight.nested_code = inputs[count - 2];
    weight.offset = inputs[count - 1];
  }
  GenericForm form;
  form.results = {gemm_4bit(call.tracer, x, weight, bias)};
  return form;
}

constexpr std::array kGenericRules = {
    GenericRule{"aten.native_batch_norm.default", "aten.native_batch_norm_backward.default", batch_norm_form,
                first_result},
    GenericRule{"forerun.attention.default", "forerun.attention_backward.default", attention_form, first_result},
    GenericRule{"forerun.rnn.default", "forerun.rnn_backward.default", rnn_form, rnn_seeds},
    GenericRule{"bitsandbytes.gemm_4bit.default", "", gemm_4bit_form, first_result},
};

}  // namespace

const GenericRule* generic_rule(std::string_view op_name) {
  const auto* found = std::find_if(kGenericRules.begin(), kGenericRules.end(), [&](const GenericRule& rule) {
    return rule.forward == op_name || rule.backward == op_name;
  });
  return found == kGenericRules.end() ? nullptr : found;
}

std::optional<Bytes> missing_reserve(const Graph& graph, const Op& op) {
  if (graph.name(op) != "aten._cudnn_rnn.default" || op.output_count < 4 || op.input_count == 0) return std::nullopt;
  const Tensor& reserve = graph.tensor(graph.outputs(op)[3]);
  const auto x = graph.shape(graph.inputs(op)[0]);
  const Attributes& attributes = graph.attributes(op);
  if (graph.storage(reserve.storage).bytes.value > 0 || x.size() != 3 || !attributes.get_bool("train", true)) {
    return std::nullopt;
  }
  const int64_t mode = attributes.get_int("mode", -1);
  const aten::RnnCall call = {.kind = kModes[static_cast<size_t>(std::clamp<int64_t>(mode, 0, 3))].second,
                              .hidden = attributes.get_int("hidden_size", 0),
                              .layers = attributes.get_int("num_layers", 0),
                              .directions = attributes.get_bool("bidirectional", false) ? 2 : 1,
                              .batch_first = attributes.get_bool("batch_first", false),
                              .dropout = attributes.get_double("dropout", 0)};
  if (mode < 0 || mode > 3 || !within_limit({x[0], x[1], call.hidden, call.layers, 16})) return std::nullopt;
  const int64_t batch = x[call.batch_first ? 0 : 1];
  const int64_t length = x[call.batch_first ? 1 : 0];
  return Bytes(aten::rnn_reserve_bytes(call, batch, length, graph.tensor(graph.inputs(op)[0]).dtype));
}

}  // namespace forerun::derive
