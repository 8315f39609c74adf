#include "memory/op_temporaries.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "memory/batch_norm_buffer.h"
#include "memory/rounding.h"

namespace forerun {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kIndex = 8;

int64_t product(std::span<const int64_t> extents) {
  int64_t result = 1;
  for (const int64_t extent : extents) result *= extent;
  return result;
}

int64_t largest(const Shape& values, int64_t otherwise) {
  return values.empty() ? otherwise : *std::max_element(values.begin(), values.end());
}

bool in_mask(const Attributes& attributes, size_t index) {
  const AttributeValue* value = attributes.find("output_mask");
  const auto* mask = value == nullptr ? nullptr : std::get_if<std::vector<bool>>(value);
  return mask == nullptr || (index < mask->size() && (*mask)[index]);
}

}  // namespace

OpTemporaries::Rule OpTemporaries::rule_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Rule>, 20> rules = {{
      {"aten.native_dropout.default", Rule::dropout},
      {"aten.sum.dim_IntList", Rule::reduction},
      {"aten.mean.dim", Rule::reduction},
      {"aten.native_layer_norm.default", Rule::layer_norm},
      {"aten.native_layer_norm_backward.default", Rule::layer_norm_backward},
      {"aten._softmax_backward_data.default", Rule::softmax_backward},
      {"aten.embedding_dense_backward.default", Rule::embedding_backward},
      {"aten._embedding_bag_dense_backward.default", Rule::embedding_backward},
      {"aten.convolution.default", Rule::convolution},
      {"aten.convolution_backward.default", Rule::convolution_backward},
      {"aten.native_batch_norm.default", Rule::batch_norm},
      {"aten.native_batch_norm_backward.default", Rule::batch_norm_backward},
      {"aten.cudnn_batch_norm.default", Rule::cudnn_batch_norm},
      {"aten.cudnn_batch_norm_backward.default", Rule::cudnn_batch_norm_backward},
      {"aten._cudnn_rnn.default", Rule::rnn},
      {"aten._cudnn_rnn_backward.default", Rule::rnn_backward},
      {"aten._scaled_dot_product_efficient_attention_backward.default", Rule::efficient_attention_backward},
      {"aten._scaled_dot_product_flash_attention_backward.default", Rule::flash_attention_backward},
      {"aten._scaled_dot_product_cudnn_attention_backward.default", Rule::cudnn_attention_backward},
      {"aten.roll.default", Rule::roll},
  }};
  const auto* found = std::find_if(rules.begin(), rules.end(), [&](const auto& entry) { return entry.first == name; });
  return found == rules.end() ? Rule::none : found->second;
}

OpTemporaries::OpTemporaries(const Graph& graph, const TemporaryOptions& options)
    : graph_(graph),
      options_(options),
      rules_(graph.names().size(), Rule::none),
      layouts_(graph, options.channels_last) {
  for (size_t name = 0; name < rules_.size(); ++name) rules_[name] = rule_of(graph.names()[NameId(name)]);
}

OutputOrder OpTemporaries::append(const Op& op, std::vector<Temporary>& found) {
  const Rule rule = rules_[op.name.value];
  OutputOrder order = OutputOrder::as_given;
  if (rule != Rule::none && op.input_count > 0 && op.output_count > 0) {
    append(op, rule, found);
    order = order_of(op, rule);
  }
  layouts_.pass(op);
  return order;
}

size_t output_at(OutputOrder order, size_t place, size_t count) {
  switch (order) {
    case OutputOrder::as_given: break;
    case OutputOrder::reversed: return count - 1 - place;
    case OutputOrder::first_last: return place + 1 == count ? 0 : place + 1;
    case OutputOrder::second_first: return count > 1 && place < 2 ? 1 - place : place;
  }
  return place;
}

OutputOrder OpTemporaries::order_of(const Op& op, Rule rule) const {
  const auto inputs = graph_.inputs(op);
  if (rule == Rule::dropout) return OutputOrder::reversed;
  if (rule == Rule::batch_norm_backward && channels_together(inputs[0])) return OutputOrder::first_last;
  // PyTorch's own kernels for depthwise convolutions begin with the weight's gradient.
  if (rule == Rule::convolution_backward && inputs.size() > 2) {
    const Attributes& attributes = graph_.attributes(op);
    const int64_t groups = attributes.get_int("groups", 1);
    const auto shape = graph_.shape(inputs[1]);
    const bool own = shape.size() == 4 && groups > 1 && groups == shape[1] && !layouts_.of(inputs[1]).channels_last &&
                     !layouts_.of(inputs[0]).channels_last;
    if (own && in_mask(attributes, 0) && in_mask(attributes, 1)) return OutputOrder::second_first;
  }
  return OutputOrder::as_given;
}

void OpTemporaries::append(const Op& op, Rule rule, std::vector<Temporary>& found) const {
  const TensorId first = graph_.inputs(op)[0];
  const int64_t bytes = graph_.bytes_of(first).value;
  switch (rule) {
    case Rule::none:
    case Rule::dropout: return;
    case Rule::reduction: return append_reduction(op, found);
    case Rule::layer_norm:
      if (!contiguous(first)) found.push_back({.bytes = bytes, .outputs_before = 0});
      return;
    case Rule::layer_norm_backward: return append_layer_norm_backward(op, found);
    case Rule::softmax_backward: return found.push_back({.bytes = bytes});  // gradient times result
    case Rule::embedding_backward: return append_embedding_backward(op, found);
    case Rule::convolution: return append_convolution(op, found);
    case Rule::convolution_backward: return append_convolution_backward(op, found);
    case Rule::batch_norm:
    case Rule::batch_norm_backward:
    case Rule::cudnn_batch_norm:
    case Rule::cudnn_batch_norm_backward: return append_batch_norm(op, rule, found);
    case Rule::rnn: return append_rnn(op, false, found);
    case Rule::rnn_backward: return append_rnn(op, true, found);
    case Rule::efficient_attention_backward:
    case Rule::flash_attention_backward:
    case Rule::cudnn_attention_backward: return append_attention_backward(op, rule, found);
    case Rule::roll:  // one dimension after the other
      if (graph_.attributes(op).get_ints("dims").size() > 1) found.push_back({.bytes = bytes, .outputs_before = 0});
      return;
  }
}

// Whether elements follow each other in the order of dimensions.
bool OpTemporaries::contiguous(TensorId tensor) const {
  const Layout layout = layouts_.of(tensor);
  return !layout.permuted && !layout.expanded && !layout.sliced && !layout.channels_last;
}

// Whether the channels of a pixel follow each other.
bool OpTemporaries::channels_together(TensorId tensor) const {
  const auto shape = graph_.shape(tensor);
  if (shape.size() < 2) return false;
  return layouts_.of(tensor).channels_last || (product(shape.subspan(2)) == 1 && contiguous(tensor));
}

void OpTemporaries::append_batch_norm(const Op& op, Rule rule, std::vector<Temporary>& found) const {
  const TensorId input = graph_.inputs(op)[0];
  if (!channels_together(input)) return;
  const int64_t channels = graph_.shape(input)[1];
  if (channels < 1) return;
  const int64_t rows = graph_.element_count(input) / channels;
  const bool backward = rule == Rule::batch_norm_backward || rule == Rule::cudnn_batch_norm_backward;
  if (rule == Rule::cudnn_batch_norm || rule == Rule::cudnn_batch_norm_backward) {
    found.push_back({.bytes = cudnn_batch_norm_workspace(rows, channels, backward), .brief = true});
    return;
  }
  if (backward) {  // two sums a channel, which the gradient of the input then takes
    for (int sum = 0; sum < 2; ++sum) found.push_back({.bytes = kFloat * channels, .outputs_before = 0});
  }
  const BatchNormSums sums = batch_norm_sums(rows, channels, backward);
  if (sums.staging == 0) return;
  const uint32_t before = backward ? 2 : UINT32_MAX;
  found.push_back({.bytes = sums.staging, .outputs_before = before, .brief = true});
  found.push_back({.bytes = sums.counters, .outputs_before = before, .brief = true});
}

void OpTemporaries::add_reduction(const Reduction& reduction, uint32_t outputs_before,
                                  std::vector<Temporary>& found) const {
  const ReductionBuffer buffer = reduction_buffer(reduction, options_.device);
  if (buffer.partial == 0) return;
  found.push_back({.bytes = buffer.partial, .outputs_before = outputs_before});
  found.push_back({.bytes = buffer.counters, .outputs_before = outputs_before});
}

void OpTemporaries::append_reduction(const Op& op, std::vector<Temporary>& found) const {
  const TensorId input = graph_.inputs(op)[0];
  const auto shape = graph_.shape(input);
  const auto strides = graph_.strides(input);
  std::vector<bool> reduced(shape.size(), false);
  const Shape dims = graph_.attributes(op).get_ints("dim");
  for (const int64_t dim : dims) {
    const int64_t index = dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim;
    if (index >= 0 && index < static_cast<int64_t>(shape.size())) reduced[static_cast<size_t>(index)] = true;
  }
  if (dims.empty()) reduced.assign(shape.size(), true);
  Reduction reduction;
  size_t fastest = shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    (reduced[i] ? reduction.inputs : reduction.outputs) *= shape[i];
    if (shape[i] == 1) continue;
    const bool faster = fastest == shape.size() || strides.size() != shape.size() || strides[i] <= strides[fastest];
    if (faster) fastest = i;
  }
  if (strides.empty() && shape.size() == 4 && layouts_.of(input).channels_last && shape[1] > 1) fastest = 1;
  if (fastest == shape.size() || reduction.inputs == 1) return;
  reduction.along_fastest = reduced[fastest];
  reduction.whole = reduction.outputs == 1;
  reduction.output_multiple = shape[fastest];
  add_reduction(reduction, UINT32_MAX, found);
}

// Partial sums for the gradients of weight and bias, where rows are many and short.
void OpTemporaries::append_layer_norm_backward(const Op& op, std::vector<Temporary>& found) const {
  constexpr int64_t kManyRows = 65536, kRows = 32, kShort = 66, kPartialLimit = int64_t{1} << 20;
  for (const TensorId input : graph_.inputs(op).first(std::min<size_t>(op.input_count, 2))) {
    if (!contiguous(input)) found.push_back({.bytes = graph_.bytes_of(input).value, .outputs_before = 0});
  }
  const int64_t row = product(graph_.attributes(op).get_ints("normalized_shape"));
  if (row <= 0) return;
  const int64_t rows = graph_.element_count(graph_.inputs(op)[0]) / row;
  if (rows <= kManyRows || row / kRows >= kShort) return;
  const int64_t partial = std::min((rows + kRows - 1) / kRows, kPartialLimit / row);
  found.push_back({.bytes = kFloat * row * partial, .outputs_before = 1});
  found.push_back({.bytes = kFloat * row * partial, .outputs_before = 1});
  add_reduction({.outputs = row, .inputs = partial, .output_multiple = row}, UINT32_MAX, found);
}

// Above 3072 indices they are sorted, cut into segments of equal ones, and summed in parts of ten.
void OpTemporaries::append_embedding_backward(const Op& op, std::vector<Temporary>& found) const {
  constexpr int64_t kFew = 3072, kRowsOfPart = 10, kSortScratch = 16;
  if (op.input_count < 2) return;
  const int64_t indices = graph_.element_count(graph_.inputs(op)[1]);
  const auto weight = graph_.shape(graph_.outputs(op)[0]);
  if (indices <= kFew || weight.size() != 2) return;
  const int64_t segments = std::min(indices, weight[0]);
  const int64_t parts = segments + indices / kRowsOfPart;
  for (int sorted_and_original = 0; sorted_and_original < 2; ++sorted_and_original) {
    found.push_back({.bytes = kIndex * indices, .outputs_before = 0});
  }
  found.push_back({.bytes = (kIndex + kSortScratch) * indices, .outputs_before = 0, .brief = true});
  found.push_back({.bytes = kIndex * indices});
  for (int offsets_and_parts = 0; offsets_and_parts < 2; ++offsets_and_parts) {
    found.push_back({.bytes = kIndex * segments});
  }
  found.push_back({.bytes = kIndex * parts});
  found.push_back({.bytes = kFloat * parts * weight[1]});
}

// The gradient of the query is summed in float32 beside a number a row.
void OpTemporaries::append_attention_backward(const Op& op, Rule rule, std::vector<Temporary>& found) const {
  if (op.input_count < 3) return;
  const auto query = graph_.shape(graph_.inputs(op)[1]);
  if (query.size() != 4) return;
  const int64_t heads = query[0] * query[1];
  const int64_t length = query[2];
  const int64_t size = query[3];
  if (rule == Rule::cudnn_attention_backward) {
    found.push_back({.bytes = kFloat * heads * length * (size + 1) + 256});
  } else if (rule == Rule::flash_attention_backward) {
    found.push_back({.bytes = kFloat * heads * round_up(length, 128)});
    found.push_back({.bytes = kFloat * heads * round_up(length, 128) * round_up(size, 32)});
  } else {
    found.push_back({.bytes = kFloat * heads * length, .brief = true});
    found.push_back({.bytes = kFloat * heads * length});
    found.push_back(
        {.bytes = kFloat * heads * (round_up(length, 64) * round_up(size, 64) + round_up(length, 64) / 16)});
  }
}

ConvolutionShape OpTemporaries::convolution_shape(const Op& op, TensorId input, TensorId weight,
                                                  TensorId output) const {
  const Attributes& attributes = graph_.attributes(op);
  const auto in = graph_.shape(input);
  const auto out = graph_.shape(output);
  const auto window = graph_.shape(weight);
  ConvolutionShape shape;
  shape.half = size_of(graph_.tensor(input).dtype) == 2;
  shape.channels_last = layouts_.of(input).channels_last;
  shape.transposed = attributes.get_bool("transposed", false);
  shape.groups = attributes.get_int("groups", 1);
  shape.batch = in[0];
  shape.channels = in[1];
  shape.filters = out[1];
  shape.kernel = product(window.subspan(2));
  shape.kernel_height = window[2];
  shape.stride = largest(attributes.get_ints("stride"), 1);
  shape.dilation = largest(attributes.get_ints("dilation"), 1);
  shape.padding = largest(attributes.get_ints("padding"), 0);
  shape.image = product(in.subspan(2));
  shape.out_image = product(out.subspan(2));
  shape.in_width = in.back();
  return shape;
}

// PyTorch's own kernels for depthwise convolutions take nothing.
int64_t OpTemporaries::workspace(ConvolutionPass pass, const ConvolutionShape& shape) const {
  if (!shape.channels_last && shape.groups > 1 && shape.groups == shape.channels) return 0;
  const auto [known, isnew] = workspaces_.try_emplace({pass, shape}, 0);
  if (isnew) known->second = options_.workspaces->convolution(pass, shape).value_or(0);
  return known->second;
}

void OpTemporaries::append_convolution(const Op& op, std::vector<Temporary>& found) const {
  if (options_.workspaces == nullptr || op.input_count < 2) return;
  const auto inputs = graph_.inputs(op);
  if (graph_.shape(inputs[0]).size() < 4 || graph_.shape(graph_.outputs(op)[0]).size() < 4) return;
  const ConvolutionShape shape = convolution_shape(op, inputs[0], inputs[1], graph_.outputs(op)[0]);
  found.push_back({.bytes = workspace(ConvolutionPass::convolution, shape)});
}

void OpTemporaries::append_convolution_backward(const Op& op, std::vector<Temporary>& found) const {
  if (options_.workspaces == nullptr || op.input_count < 3) return;
  const auto inputs = graph_.inputs(op);
  if (graph_.shape(inputs[0]).size() < 4 || graph_.shape(inputs[1]).size() < 4) return;
  const Attributes& attributes = graph_.attributes(op);
  const ConvolutionShape shape = convolution_shape(op, inputs[1], inputs[2], inputs[0]);
  uint32_t given = 0;
  const auto add = [&](ConvolutionPass pass) {
    found.push_back({.bytes = workspace(pass, shape), .outputs_before = ++given, .brief = true});
  };
  if (in_mask(attributes, 0)) add(ConvolutionPass::input_gradient);
  if (in_mask(attributes, 1)) add(ConvolutionPass::weight_gradient);
  if (!in_mask(attributes, 2)) return;
  const int64_t outputs = shape.filters;
  add_reduction({.outputs = outputs,
                 .inputs = shape.batch * shape.out_image,
                 .along_fastest = !shape.channels_last,
                 .output_multiple = outputs},
                UINT32_MAX, found);
}

void OpTemporaries::append_rnn(const Op& op, bool backward, std::vector<Temporary>& found) const {
  if (options_.workspaces == nullptr || op.input_count < 2) return;
  const Attributes& attributes = graph_.attributes(op);
  const TensorId input = graph_.inputs(op)[0];
  const auto extents = graph_.shape(input);
  if (extents.size() != 3) return;
  const bool batch_first = attributes.get_bool("batch_first", false);
  RecurrentShape shape;
  shape.kind = static_cast<int>(attributes.get_int("mode", 2));
  shape.element = size_of(graph_.tensor(input).dtype);
  shape.batch = extents[batch_first ? 0 : 1];
  shape.steps = extents[batch_first ? 1 : 0];
  shape.input = extents[2];
  shape.hidden = attributes.get_int("hidden_size", 1);
  shape.layers = attributes.get_int("num_layers", 1);
  shape.directions = attributes.get_bool("bidirectional", false) ? 2 : 1;
  shape.weight_bytes = graph_.storage(graph_.tensor(graph_.inputs(op)[1]).storage).bytes.value;
  const int64_t workspace = options_.workspaces->recurrent(shape);
  // cuDNN takes steps first: a batch-first tensor is copied, unless its steps lie first in memory.
  const auto copied = [&](TensorId tensor) {
    const auto strides = graph_.strides(tensor);
    const bool steps_first = strides.empty() ? layouts_.of(tensor).permuted
                                             : strides.size() == 3 && strides[2] == 1 && strides[0] <= strides[1];
    return batch_first && shape.batch > 1 && shape.steps > 1 && !steps_first;
  };
  const int64_t input_copy = copied(input) ? graph_.bytes_of(input).value : 0;
  if (!backward) {  // behind the results, before what is kept for the backward pass
    found.push_back({.bytes = input_copy, .outputs_before = 0});
    found.push_back({.bytes = workspace, .outputs_before = 3});
    return;
  }
  int64_t gradient_copy = 0;  // of the results: the second of two tensors of their shape
  int results = 0;
  for (const TensorId tensor : graph_.inputs(op).subspan(1)) {
    const auto other = graph_.shape(tensor);
    const bool result = other.size() == 3 && other[0] == extents[0] && other[1] == extents[1];
    if (result && ++results == 2 && copied(tensor)) gradient_copy = graph_.bytes_of(tensor).value;
  }
  // Gradients of input and states, then of weights.
  const uint32_t states = shape.kind == 2 ? 3 : 2;
  found.push_back({.bytes = input_copy, .outputs_before = 0});
  found.push_back({.bytes = gradient_copy, .outputs_before = 0});
  found.push_back({.bytes = workspace, .outputs_before = states, .brief = true});
  found.push_back({.bytes = input_copy, .outputs_before = states, .frees = 2});
  found.push_back({.bytes = workspace});
}

}  // namespace forerun
