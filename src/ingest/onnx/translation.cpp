#include "ingest/onnx/translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ingest/onnx/rules.h"
#include "ingest/onnx/value_use.h"

namespace forerun::ingest {
namespace {

constexpr int64_t kMaxKnownTogether = int64_t{1} << 24;  // elements of constants kept, in all: 128 MiB
constexpr size_t kLongestName = 512;

bool is_onnx_domain(const onnx::NodeProto& node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

// "/layer1/layer1.0/conv1/Conv" -> "layer1.0.conv1": exporters repeat the path in each part, the last is the op.
std::string module_of_path(std::string_view path) {
  std::string module;
  std::string_view last;
  size_t last_at = 0;
  for (size_t at = 0; at < path.size();) {
    const size_t end = path.find('/', at);
    if (end == std::string_view::npos) break;
    const std::string_view part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty()) continue;
    const bool repeats =
        !last.empty() && part.size() > last.size() && part.starts_with(last) && part[last.size()] == '.';
    if (repeats) {
      module.resize(last_at);
    } else if (!module.empty()) {
      module += '.';
    }
    last_at = module.size();
    module += part;
    last = part;
  }
  return module;
}

bool has_nan(const onnx::AttributeProto& attribute) {
  return std::isnan(attribute.f()) ||
         std::any_of(attribute.floats().begin(), attribute.floats().end(), [](float f) { return std::isnan(f); });
}

}  // namespace

Translation::Translation(const onnx::GraphProto& graph, const Dataflow& flow, int64_t opset)
    : graph_(graph),
      flow_(flow),
      opset_(opset),
      uses_(value_uses(graph, flow)),
      weight_places_(weight_places(graph, flow, uses_)),
      values_(flow.values.size()) {
  stated_types_.reserve(static_cast<size_t>(graph.value_info_size()) + static_cast<size_t>(graph.output_size()));
  for (const auto* infos : {&graph.value_info(), &graph.output()}) {
    for (const onnx::ValueInfoProto& info : *infos) stated_types_.emplace(info.name(), &info.type());
  }
}

Error Translation::located(Error error, std::string where) const {
  error.where = std::move(where);
  if (error.remedy.empty()) error.remedy = "check that the file is a valid export of the model";
  return error;
}

void Translation::set_constant(ValueIndex value, Constant constant) {
  if (constant.known) known_elements_ += static_cast<int64_t>(constant.size());
  if (known_elements_ > kMaxKnownTogether) {
    constant.known = false;
    constant.ints = {};
    constant.reals = {};
  }
  values_[value].constant = static_cast<uint32_t>(constants_.size());
  constants_.push_back(std::move(constant));
}

TensorId Translation::tensor_of(ValueIndex index) {
  Value& value = values_[index];
  if (value.tensor.valid()) return value.tensor;
  const ForwardBuilder::Scope outside(builder_, "", ForwardBuilder::Scope::absolute);
  const std::string name = printable(flow_.values[index].name, kLongestName);
  if (value.constant == kNobody) {
    builder_.fail(fmt::format("value '{}' has no tensor", printable(name)), "export the model again");
    return builder_.buffer(name, {});
  }
  const Constant& constant = constants_[value.constant];
  value.tensor = builder_.buffer(name, constant.shape, constant.dtype);
  return value.tensor;
}

Status Translation::add_roots(const std::vector<const onnx::ValueInfoProto*>& inputs, const Dimensions& dimensions) {
  const auto add = [&](const std::string& name, Result<Constant> constant) -> Status {
    if (!constant) return located(constant.error(), fmt::format("initializer '{}'", printable(name)));
    const ValueIndex value = flow_.by_name.at(name);
    return add_initializer(value, std::move(*constant));
  };
  for (const onnx::TensorProto& tensor : graph_.initializer()) {
    if (Status added = add(tensor.name(), read_tensor(tensor)); !added) return added;
  }
  for (const onnx::SparseTensorProto& sparse : graph_.sparse_initializer()) {
    if (Status added = add(name_of(sparse), read_sparse(sparse)); !added) return added;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<DType> dtype = dtype_of(inputs[i]->type().tensor_type().elem_type());
    const std::string name = printable(inputs[i]->name(), kLongestName);
    if (!dtype) {
      return Error{
          fmt::format("element type {} cannot be fed to a training run", inputs[i]->type().tensor_type().elem_type()),
          fmt::format("input '{}'", printable(name)), "remove the preprocessing of this input from the model"};
    }
    inputs_.push_back(builder_.input(name, dimensions.input_shapes()[i], *dtype));
    values_[flow_.by_name.at(inputs[i]->name())].tensor = inputs_.back();
  }
  return {};
}

Status Translation::add_initializer(ValueIndex index, Constant constant) {
  if (is_weight(index, constant)) {
    add_weight(index, constant);
  } else {
    set_constant(index, std::move(constant));
  }
  if (!builder_.failed()) return {};
  return located(builder_.finish().error(), fmt::format("initializer '{}'", printable(flow_.values[index].name)));
}

// Floating, with dimensions, and read by a layer as its weight; or, where the file keeps its weights like this one,
// read by anything but as a setting. One element that only arithmetic reads is a number.
bool Translation::is_weight(ValueIndex index, const Constant& given) const {
  const uint8_t uses = uses_[index];
  if (!is_floating(given.dtype) || given.shape.empty() || uses == kSetting || uses == 0) return false;
  const bool number = given.known && given.size() == 1 && (uses & ~(kArithmetic | kSetting)) == 0;
  if (number) return false;
  const GivenBy giver = given_by(graph_, flow_, index);
  const bool by_layer = (uses & (kWeightUses | kStatistic)) != 0;
  return weight_places_.in(giver) || (by_layer && giver != GivenBy::node);
}

void Translation::add_weight(ValueIndex index, const Constant& given) {
  const ForwardBuilder::Scope outside(builder_, "", ForwardBuilder::Scope::absolute);
  const uint8_t uses = uses_[index];
  const Shape& shape = given.shape;
  const std::string name = printable(flow_.values[index].name, kLongestName);
  Value& value = values_[index];
  const bool rnn = uses == kRecurrentWeight || uses == kRecurrentBias;
  if (uses == kStatistic) {
    value.tensor = builder_.buffer(name, shape, given.dtype);
  } else if (rnn && shape.size() == (uses == kRecurrentBias ? 2 : 3) && shape[0] >= 1 && shape[0] <= 2) {
    value.part = Part::rnn;
    split_rnn_weight(index, given, uses == kRecurrentBias);
  } else if (uses == kProductWeight && shape.size() == 2) {
    value.part = Part::transposed;
    value.tensor = builder_.parameter(name, {shape[1], shape[0]}, given.dtype);
  } else {
    value.part = Part::parameter;
    value.tensor = builder_.parameter(name, shape, given.dtype);
  }
}

// ONNX stacks directions, and the two biases of each; PyTorch has a parameter for each.
void Translation::split_rnn_weight(ValueIndex index, const Constant& weight, bool bias) {
  const Shape& shape = weight.shape;
  const std::string name = printable(flow_.values[index].name, kLongestName);
  std::vector<TensorId>& parts = rnn_parts_[index];
  for (int64_t direction = 0; direction < shape[0]; ++direction) {
    const std::string suffix = direction == 0 ? "" : "_reverse";
    if (bias) {
      parts.push_back(builder_.parameter(name + "_ih" + suffix, {shape[1] / 2}, weight.dtype));
      parts.push_back(builder_.parameter(name + "_hh" + suffix, {shape[1] - shape[1] / 2}, weight.dtype));
    } else {
      parts.push_back(builder_.parameter(name + suffix, {shape[1], shape[2]}, weight.dtype));
    }
  }
}

bool Translation::is_constant_node(uint32_t node) const {
  const onnx::NodeProto& proto = graph_.node(static_cast<int>(node));
  return is_onnx_domain(proto) && proto.op_type() == "Constant" && flow_.inputs(node).empty();
}

// Constant nodes come first, as initializers do, so that a rule that looks ahead (for the bias added to a product)
// finds them.
Status Translation::translate_nodes(const Dimensions& dimensions) {
  for (const bool constants : {true, false}) {
    for (const uint32_t index : flow_.order) {
      if (is_constant_node(index) != constants) continue;
      if (Status done = translate(index, dimensions); !done) return done;
    }
  }
  return {};
}

Status Translation::translate(uint32_t index, const Dimensions& dimensions) {
  Node node(*this, index);
  const onnx::NodeProto& proto = node.proto_;
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    if (has_nan(attribute)) {
      return Error{fmt::format("attribute '{}' is not a number (NaN)", printable(attribute.name())),
                   label_of(proto, index), "export the model again"};
    }
  }
  if (proto.op_type().empty()) {
    return Error{"the node does not say which op it is", label_of(proto, index), "export the model again"};
  }
  if (const auto done = done_.find(index); done != done_.end()) {
    node.forward(done->second);
    return {};
  }
  const Rule* rule = is_onnx_domain(proto) ? find_rule(proto.op_type()) : nullptr;
  if (!is_onnx_domain(proto) || !fold(node)) {
    const ForwardBuilder::Scope scope(builder_, module_of(node), ForwardBuilder::Scope::absolute);
    bool covered = rule != nullptr;
    for (size_t i = rule == nullptr ? 0 : rule->outputs; i < node.output_count(); ++i)
      covered = covered && !node.is_used(i);
    if (!covered || !rule->translate(node)) carry_unknown(node, dimensions);
  }
  if (builder_.failed()) return blamed(located(builder_.finish().error(), label_of(proto, index)));
  return check_outputs(node);
}

// Shapes that were guessed before may be the cause of a fault.
Error Translation::blamed(Error error) const {
  if (guessed_.empty()) return error;
  error.remedy = fmt::format(
      "no rule knows {}, and the shape of its result was guessed; state it in the file (onnx.shape_inference), or "
      "export the model without that op",
      guessed_);
  return error;
}

// Shapes as value_info states them, else that of the first input.
void Translation::carry_unknown(Node& node, const Dimensions& dimensions) {
  size_t first = 0;
  while (first < node.input_count() && !node.has(first)) ++first;
  std::vector<std::pair<Shape, DType>> results;
  for (const ValueIndex output : node.outputs_) {
    std::pair<Shape, DType> result = {node.shape(first), node.dtype(first)};
    std::optional<Shape> known;
    const auto stated = output == kAbsent ? stated_types_.end() : stated_types_.find(flow_.values[output].name);
    if (stated != stated_types_.end()) {
      known = dimensions.stated_shape(*stated->second);
      if (known) result.first = *known;
      result.second = dtype_of(stated->second->tensor_type().elem_type()).value_or(result.second);
    }
    if (!known && guessed_.empty()) guessed_ = label_of(node.proto_, node.index_);
    results.push_back(std::move(result));
  }
  node.carry(results);
}

Status Translation::check_outputs(const Node& node) const {
  for (const ValueIndex output : node.outputs_) {
    if (output == kAbsent) continue;
    const Value& value = values_[output];
    if (!value.tensor.valid()) continue;
    const Shape shape = builder_.shape(value.tensor);
    if (checked_elements(shape)) continue;
    return Error{fmt::format("its result '{}' has the impossible shape {}", printable(flow_.values[output].name),
                             text_of(shape)),
                 label_of(node.proto_, node.index_), "use a smaller batch or export the model again"};
  }
  return {};
}

// The module that owns the node's parameter (PyTorch's names end in ".weight"), else the path in the node's name.
std::string Translation::module_of(const Node& node) const {
  for (size_t i = 0; i < std::min<size_t>(node.inputs_.size(), 8); ++i) {
    if (!node.is_parameter(i)) continue;
    ValueIndex value = node.inputs_[i];
    for (int step = 0; step < 4 && flow_.values[value].producer != kNobody; ++step) {  // through Identity and Transpose
      const std::span<const ValueIndex> sources = flow_.inputs(flow_.values[value].producer);
      if (sources.empty() || sources[0] == kAbsent) break;
      value = sources[0];
    }
    const std::string_view name = flow_.values[value].name;
    const size_t dot = name.rfind('.');
    if (dot != std::string_view::npos && dot > 0) return printable(name.substr(0, dot), kLongestName);
  }
  return printable(module_of_path(std::string_view(node.proto_.name()).substr(0, kLongestName)), kLongestName);
}

Status Translation::add_results() {
  for (const onnx::ValueInfoProto& output : graph_.output()) {
    const ValueIndex index = flow_.by_name.at(output.name());
    const TensorId tensor = tensor_of(index);
    if (builder_.failed()) {
      return located(builder_.finish().error(), fmt::format("output '{}'", printable(output.name())));
    }
    if (!is_floating(builder_.dtype(tensor))) continue;
    builder_.result(tensor);
    results_.push_back(tensor);
  }
  if (!results_.empty()) return {};
  return Error{"no output of the model is floating, so there is nothing to train on", "graph outputs",
               "export the model with its logits as an output"};
}

}  // namespace forerun::ingest
