// Node: what a rule sees of the node it translates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ingest/onnx/translation.h"
#include "ingest/onnx/value_use.h"

namespace forerun::ingest {

Node::Node(Translation& translation, uint32_t index)
    : b(translation.builder_),
      opset(translation.opset_),
      translation_(translation),
      proto_(translation.graph_.node(static_cast<int>(index))),
      index_(index),
      inputs_(translation.flow_.inputs(index)),
      outputs_(translation.flow_.outputs(index)) {}

TensorId Node::in(size_t input) {
  if (has(input)) return translation_.tensor_of(inputs_[input]);
  fail(fmt::format("input {} is missing", input), "export the model again");
  return b.buffer("missing", {});
}

std::optional<TensorId> Node::optional_in(size_t input) { return has(input) ? std::optional(in(input)) : std::nullopt; }

std::vector<TensorId> Node::all_inputs() {
  std::vector<TensorId> tensors;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!has(i)) continue;
    if (const std::vector<TensorId>* parts = rnn_parts(i)) {
      tensors.insert(tensors.end(), parts->begin(), parts->end());
    } else {
      tensors.push_back(in(i));
    }
  }
  return tensors;
}

Shape Node::shape(size_t input) const {
  if (!has(input)) return {};
  const auto& value = translation_.values_[inputs_[input]];
  if (value.tensor.valid()) return b.shape(value.tensor);
  return value.constant == kNobody ? Shape{} : translation_.constants_[value.constant].shape;
}

DType Node::dtype(size_t input) const {
  if (!has(input)) return DType::float32;
  const auto& value = translation_.values_[inputs_[input]];
  if (value.tensor.valid()) return b.dtype(value.tensor);
  return value.constant == kNobody ? DType::float32 : translation_.constants_[value.constant].dtype;
}

bool Node::is_parameter(size_t input) const {
  return has(input) && translation_.values_[inputs_[input]].part != Translation::Part::value;
}

const Constant* Node::constant(size_t input) const {
  if (!has(input)) return nullptr;
  const uint32_t index = translation_.values_[inputs_[input]].constant;
  return index == kNobody || !translation_.constants_[index].known ? nullptr : &translation_.constants_[index];
}

std::optional<Shape> Node::integers(size_t input) const {
  const Constant* contents = constant(input);
  if (contents == nullptr || is_floating(contents->dtype)) return std::nullopt;
  return contents->ints;
}

std::optional<double> Node::scalar(size_t input) const {
  const Constant* contents = constant(input);
  return contents == nullptr || contents->size() != 1 ? std::nullopt : std::optional(contents->number(0));
}

bool Node::is_transposed(size_t input) const {
  return has(input) && translation_.values_[inputs_[input]].part == Translation::Part::transposed;
}

const std::vector<TensorId>* Node::rnn_parts(size_t input) const {
  if (!has(input)) return nullptr;
  const auto found = translation_.rnn_parts_.find(inputs_[input]);
  return found == translation_.rnn_parts_.end() ? nullptr : &found->second;
}

std::optional<uint32_t> Node::only_user(std::string_view type) const {
  if (outputs_.size() != 1 || outputs_[0] == kAbsent) return std::nullopt;
  const DataflowValue& result = translation_.flow_.values[outputs_[0]];
  if (result.uses != 1 || result.first_user == kNobody) return std::nullopt;
  const Node user(translation_, result.first_user);
  const bool fits =
      user.type() == type && user.proto_.domain().empty() && user.inputs_.size() == 2 && user.outputs_.size() == 1;
  return fits ? std::optional(result.first_user) : std::nullopt;
}

std::optional<TensorId> Node::take_following_bias(int64_t features) {
  const std::optional<uint32_t> user = only_user("Add");
  if (!user) return std::nullopt;
  const Node add(translation_, *user);
  if (add.has_attribute("axis")) return std::nullopt;  // before opset 7: aligned with another dimension than the last
  const size_t product = add.inputs_[0] == outputs_[0] ? 0 : 1;
  if (!add.is_parameter(1 - product) || add.shape(1 - product) != Shape{features}) return std::nullopt;
  translation_.done_[*user] = product;
  return translation_.tensor_of(add.inputs_[1 - product]);
}

bool Node::take_following_product() {
  const std::optional<uint32_t> user = only_user("Mul");
  if (!user || !has(0)) return false;
  const std::span<const ValueIndex> factors = translation_.flow_.inputs(*user);
  const size_t own = factors[0] == outputs_[0] ? 0 : 1;
  if (factors[1 - own] != inputs_[0]) return false;
  translation_.done_[*user] = own;
  return true;
}

bool Node::keep_transposed() {
  if (!has(0) || rank(0) != 2 || outputs_.size() != 1 || outputs_[0] == kAbsent) return false;
  const Translation::Value& weight = translation_.values_[inputs_[0]];
  if (weight.part != Translation::Part::parameter || translation_.uses_[outputs_[0]] != kProductWeight) return false;
  translation_.values_[outputs_[0]] = {.tensor = weight.tensor, .part = Translation::Part::transposed};
  return true;
}

const onnx::AttributeProto* Node::attribute(std::string_view name) const {
  for (const onnx::AttributeProto& attribute : proto_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t Node::integer(std::string_view name, int64_t otherwise) const {
  const onnx::AttributeProto* found = attribute(name);
  return found == nullptr || !found->has_i() ? otherwise : found->i();
}

double Node::real(std::string_view name, double otherwise) const {
  const onnx::AttributeProto* found = attribute(name);
  if (found == nullptr || !found->has_f()) return otherwise;
  // The shortest decimal that gives this float: 1e-05, not 9.99999974e-06.
  double value = found->f();
  if (std::isfinite(value)) value = std::strtod(fmt::format("{}", found->f()).c_str(), nullptr);
  return value;
}

std::string Node::text(std::string_view name, std::string_view otherwise) const {
  const onnx::AttributeProto* found = attribute(name);
  return found == nullptr || !found->has_s() ? std::string(otherwise) : found->s();
}

Shape Node::integers(std::string_view name) const {
  const onnx::AttributeProto* found = attribute(name);
  return found == nullptr ? Shape{} : Shape(found->ints().begin(), found->ints().end());
}

std::optional<Shape> Node::list(std::string_view name, size_t input) const {
  if (has_attribute(name)) return integers(name);
  return integers(input);
}

std::optional<DType> Node::cast_target() const {
  const onnx::AttributeProto* to = attribute("to");
  if (to == nullptr) return std::nullopt;
  if (!to->has_s()) return dtype_of(static_cast<int32_t>(std::clamp<int64_t>(to->i(), 0, 1000)));
  onnx::TensorProto::DataType named = onnx::TensorProto::UNDEFINED;
  return onnx::TensorProto::DataType_Parse(to->s(), &named) ? dtype_of(named) : std::nullopt;
}

int64_t Node::axis(int64_t dim, int64_t of_rank) {
  const int64_t wrapped = dim < 0 ? dim + of_rank : dim;
  if (wrapped >= 0 && wrapped < of_rank) return wrapped;
  fail(fmt::format("axis {} does not exist in a tensor of rank {}", dim, of_rank), "export the model again");
  return 0;
}

bool Node::is_used(size_t output) const {
  return output < outputs_.size() && outputs_[output] != kAbsent &&
         translation_.flow_.values[outputs_[output]].uses > 0;
}

void Node::out(size_t output, TensorId tensor) {
  if (output < outputs_.size() && outputs_[output] != kAbsent) translation_.values_[outputs_[output]].tensor = tensor;
}

void Node::out(size_t output, Constant constant) {
  if (output < outputs_.size() && outputs_[output] != kAbsent) {
    translation_.set_constant(outputs_[output], std::move(constant));
  }
}

bool Node::out_weight(size_t output, const Constant& given) {
  if (output >= outputs_.size() || outputs_[output] == kAbsent) return false;
  if (!translation_.is_weight(outputs_[output], given)) return false;
  translation_.add_weight(outputs_[output], given);
  return true;
}

void Node::forward(size_t input, size_t output) {
  if (!has(input)) {
    in(input);  // fails
    return;
  }
  if (output >= outputs_.size() || outputs_[output] == kAbsent) return;
  const ValueIndex source = inputs_[input];
  const ValueIndex target = outputs_[output];
  translation_.values_[target] = translation_.values_[source];
  if (const auto parts = translation_.rnn_parts_.find(source); parts != translation_.rnn_parts_.end()) {
    translation_.rnn_parts_[target] = std::vector<TensorId>(parts->second);
  }
}

void Node::carry(const std::vector<std::pair<Shape, DType>>& results) {
  const std::vector<TensorId> inputs = all_inputs();
  if (b.failed()) return;
  const std::string type = printable(proto_.op_type());
  const bool standard = proto_.domain().empty() || proto_.domain() == "ai.onnx";
  ++translation_.opaque_ops_[standard ? type : printable(proto_.domain()) + "." + type];
  const std::vector<TensorId> outputs = b.opaque("onnx." + type, inputs, results);
  for (size_t i = 0; i < outputs.size(); ++i) out(i, outputs[i]);
}

}  // namespace forerun::ingest
