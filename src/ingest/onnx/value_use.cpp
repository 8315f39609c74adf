#include "ingest/onnx/value_use.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "ingest/onnx/constant.h"

namespace forerun::ingest {
namespace {

struct SlotUse {
  std::string_view type;
  size_t first;  // input slots
  size_t last;
  ValueUse use;
};

constexpr size_t kAll = static_cast<size_t>(-1);

// Sorted by type.
constexpr SlotUse kSlots[] = {
    {"BatchNormalization", 1, 2, kLayerWeight},
    {"BatchNormalization", 3, 4, kStatistic},
    {"Clip", 1, 2, kSetting},
    {"ConstantOfShape", 0, 0, kSetting},
    {"Conv", 1, 2, kLayerWeight},
    {"ConvTranspose", 1, 2, kLayerWeight},
    {"CumSum", 1, 1, kSetting},
    {"DequantizeLinear", 1, kAll, kSetting},
    {"Dropout", 1, kAll, kSetting},
    {"Expand", 1, 1, kSetting},
    {"GRU", 1, 2, kRecurrentWeight},
    {"GRU", 3, 3, kRecurrentBias},
    {"Gather", 0, 0, kLayerWeight},
    {"Gemm", 1, 2, kLayerWeight},
    {"GroupNormalization", 1, 2, kLayerWeight},
    {"InstanceNormalization", 1, 2, kLayerWeight},
    {"LSTM", 1, 2, kRecurrentWeight},
    {"LSTM", 3, 3, kRecurrentBias},
    {"LayerNormalization", 1, 2, kLayerWeight},
    {"MatMul", 0, 0, kLayerWeight},
    {"MatMul", 1, 1, kProductWeight},
    {"OneHot", 1, kAll, kSetting},
    {"PRelu", 1, 1, kLayerWeight},
    {"Pad", 1, kAll, kSetting},
    {"QuantizeLinear", 1, kAll, kSetting},
    {"RMSNormalization", 1, 1, kLayerWeight},
    {"RNN", 1, 2, kRecurrentWeight},
    {"RNN", 3, 3, kRecurrentBias},
    {"Range", 0, kAll, kSetting},
    {"Reshape", 1, 1, kSetting},
    {"Resize", 1, kAll, kSetting},
    {"Shape", 0, 0, kSetting},
    {"Size", 0, 0, kSetting},
    {"Slice", 1, kAll, kSetting},
    {"Tile", 1, kAll, kSetting},
    {"TopK", 1, 1, kSetting},
    {"Upsample", 1, kAll, kSetting},
};

// Ops whose result has the elements of its operands in another order, number or type.
constexpr std::string_view kRegrouping[] = {"Cast",  "Concat", "Expand",  "Flatten",   "Reshape",
                                            "Slice", "Split",  "Squeeze", "Transpose", "Unsqueeze"};
constexpr std::string_view kArithmeticOps[] = {"Abs",       "Add",         "Ceil",
                                               "Div",       "Equal",       "Exp",
                                               "Floor",     "Greater",     "GreaterOrEqual",
                                               "Less",      "LessOrEqual", "Log",
                                               "Max",       "Mean",        "Min",
                                               "Mod",       "Mul",         "Neg",
                                               "Not",       "Pow",         "Reciprocal",
                                               "ReduceMax", "ReduceMin",   "ReduceProd",
                                               "ReduceSum", "Round",       "Sqrt",
                                               "Sub",       "Sum",         "Where"};

template <size_t N>
bool is_one_of(const std::string_view (&sorted)[N], std::string_view type) {
  return std::binary_search(std::begin(sorted), std::end(sorted), type);
}

bool is_standard(const onnx::NodeProto& node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

// What the uses of a result say of the operand whose elements it has.
uint8_t through_regrouping(uint8_t result) {
  if (result == 0) return kOperand;
  return (result & kWeightUses) != 0 ? (result & ~kWeightUses) | kLayerWeight : result;
}

// Whether the node adds to the result of a MatMul: its other operand is the bias of that layer, however small.
bool adds_to_product(const onnx::GraphProto& graph, const Dataflow& flow, const onnx::NodeProto& node,
                     std::span<const ValueIndex> inputs, size_t slot) {
  if (node.op_type() != "Add" || inputs.size() != 2 || inputs[1 - slot] == kAbsent) return false;
  const uint32_t producer = flow.values[inputs[1 - slot]].producer;
  return producer != kNobody && graph.node(static_cast<int>(producer)).op_type() == "MatMul";
}

bool gives_floats(const onnx::NodeProto& node) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == "value" || attribute.name() == "sparse_value") {
      const int32_t type =
          attribute.has_t() ? attribute.t().data_type() : attribute.sparse_tensor().values().data_type();
      const std::optional<DType> dtype = dtype_of(type);
      return dtype && is_floating(*dtype);
    }
    if (attribute.name() == "value_floats") return true;
    if (attribute.name().starts_with("value_")) return false;
  }
  return node.op_type() == "ConstantOfShape";
}

}  // namespace

std::vector<uint8_t> value_uses(const onnx::GraphProto& graph, const Dataflow& flow) {
  std::vector<uint8_t> uses(flow.values.size(), 0);
  for (const onnx::ValueInfoProto& output : graph.output()) uses[flow.by_name.at(output.name())] |= kOperand;
  for (auto node = flow.order.rbegin(); node != flow.order.rend(); ++node) {
    const onnx::NodeProto& proto = graph.node(static_cast<int>(*node));
    const bool standard = is_standard(proto);
    const auto inputs = flow.inputs(*node);
    const auto outputs = flow.outputs(*node);
    uint8_t result = 0;
    for (const ValueIndex output : outputs) result |= output == kAbsent ? 0 : uses[output];
    if (standard && proto.op_type() == "Identity" && inputs.size() == 1 && outputs.size() == 1) {
      if (inputs[0] != kAbsent) uses[inputs[0]] |= result;
      continue;
    }
    const bool regroups = standard && is_one_of(kRegrouping, proto.op_type());
    const bool computes = standard && is_one_of(kArithmeticOps, proto.op_type());
    const auto slots = std::equal_range(std::begin(kSlots), std::end(kSlots), SlotUse{proto.op_type(), 0, 0, kOperand},
                                        [](const SlotUse& a, const SlotUse& b) { return a.type < b.type; });
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kAbsent) continue;
      uint8_t use = kOperand;
      if (regroups) use = through_regrouping(result);
      if (computes && !adds_to_product(graph, flow, proto, inputs, i)) use = kArithmetic;
      for (auto slot = slots.first; standard && slot != slots.second; ++slot) {
        if (i >= slot->first && i <= slot->last) use = slot->use;
      }
      if (result == kSetting && (computes || (standard && proto.op_type() == "Gather"))) use = kSetting;
      uses[inputs[i]] |= use;
    }
  }
  return uses;
}

GivenBy given_by(const onnx::GraphProto& graph, const Dataflow& flow, ValueIndex value) {
  const uint32_t producer = flow.values[value].producer;
  if (producer == kNobody) return GivenBy::initializer;
  const onnx::NodeProto& node = graph.node(static_cast<int>(producer));
  if (!is_standard(node)) return GivenBy::node;
  if (node.op_type() == "Constant") return GivenBy::constant;
  return node.op_type() == "ConstantOfShape" ? GivenBy::constant_of_shape : GivenBy::node;
}

bool WeightPlaces::in(GivenBy giver) const {
  switch (giver) {
    case GivenBy::initializer: return true;
    case GivenBy::constant: return constants > 0 && constants >= initializers;
    case GivenBy::constant_of_shape: return constants_of_shape > 0 && constants_of_shape >= initializers;
    case GivenBy::node: return false;
  }
  return false;
}

WeightPlaces weight_places(const onnx::GraphProto& graph, const Dataflow& flow, const std::vector<uint8_t>& uses) {
  WeightPlaces places;
  const auto is_layer_weight = [&](ValueIndex value) { return (uses[value] & kWeightUses) != 0; };
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const std::optional<DType> dtype = dtype_of(tensor.data_type());
    if (dtype && is_floating(*dtype) && is_layer_weight(flow.by_name.at(tensor.name()))) ++places.initializers;
  }
  for (const uint32_t node : flow.order) {
    const auto outputs = flow.outputs(node);
    if (outputs.size() != 1 || outputs[0] == kAbsent || !is_layer_weight(outputs[0])) continue;
    const GivenBy giver = given_by(graph, flow, outputs[0]);
    if (giver == GivenBy::node || !gives_floats(graph.node(static_cast<int>(node)))) continue;
    ++(giver == GivenBy::constant ? places.constants : places.constants_of_shape);
  }
  return places;
}

}  // namespace forerun::ingest
