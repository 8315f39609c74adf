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
    : graph_(graph), flow_(flow), opset_(opset), uses_(value_uses(graph, flow)), values_(flow.values.size()) {
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
    onnx::TensorProto dense;  // stored sparse, used dense
    dense.set_name(name_of(sparse));
    dense.set_data_type(sparse.values().data_type());
    *dense.mutable_dims() = sparse.dims();
    if (Status added = add(name_of(sparse), read_tensor(dense)); !added) return added;
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
  const uint8_t uses = uses_[index];
  const std::string name = printable(flow_.values[index].name, kLongestName);
  Value& value = values_[index];
  const bool rnn = uses == kRecurrentWeight || uses == kRecurrentBias;
  if (!is_floating(constant.dtype) || constant.shape.empty() || uses == kSetting) {
    set_constant(index, std::move(constant));
  } else if (uses == kStatistic) {
    value.tensor = builder_.buffer(name, constant.shape, constant.dtype);
  } else if (rnn && constant.shape.size() == (uses == kRecurrentBias ? 2 : 3) && constant.shape[0] >= 1 &&
             constant.shape[0] <= 2) {
    value.part = Part::rnn;
    split_rnn_weight(index, constant, uses == kRecurrentBias);
  } else if (uses == kProductWeight && constant.shape.size() == 2) {
    value.part = Part::transposed;
    value.tensor = builder_.parameter(name, {constant.shape[1], constant.shape[0]}, constant.dtype);
  } else {
    value.part = Part::parameter;
    value.tensor = builder_.parameter(name, constant.shape, constant.dtype);
  }
  if (builder_.failed()) return located(builder_.finish().error(), fmt::format("initializer '{}'", printable(name)));
  return {};
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

Status Translation::translate_nodes(const Dimensions& dimensions) {
  for (const uint32_t index : flow_.order) {
    if (Status done = translate(index, dimensions); !done) return done;
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
  if (builder_.failed()) return located(builder_.finish().error(), label_of(proto, index));
  return check_outputs(node);
}

// Shapes as value_info states them, else that of the first input.
void Translation::carry_unknown(Node& node, const Dimensions& dimensions) {
  size_t first = 0;
  while (first < node.input_count() && !node.has(first)) ++first;
  std::vector<std::pair<Shape, DType>> results;
  for (const ValueIndex output : node.outputs_) {
    std::pair<Shape, DType> result = {node.shape(first), node.dtype(first)};
    const auto stated = output == kAbsent ? stated_types_.end() : stated_types_.find(flow_.values[output].name);
    if (stated != stated_types_.end()) {
      if (std::optional<Shape> known = dimensions.stated_shape(*stated->second)) result.first = std::move(*known);
      result.second = dtype_of(stated->second->tensor_type().elem_type()).value_or(result.second);
    }
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
