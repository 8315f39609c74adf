#include "ingest/onnx/value_use.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace forerun::ingest {
namespace {

struct SlotUse {
  std::string_view type;
  size_t first;  // input slots
  size_t last;
  ValueUse use;
};

constexpr size_t kAll = static_cast<size_t>(-1);

constexpr SlotUse kSlots[] = {
    {"BatchNormalization", 3, 4, kStatistic},
    {"Clip", 1, 2, kSetting},
    {"ConstantOfShape", 0, 0, kSetting},
    {"CumSum", 1, 1, kSetting},
    {"DequantizeLinear", 1, kAll, kSetting},
    {"Dropout", 1, kAll, kSetting},
    {"Expand", 1, 1, kSetting},
    {"GRU", 1, 2, kRecurrentWeight},
    {"GRU", 3, 3, kRecurrentBias},
    {"LSTM", 1, 2, kRecurrentWeight},
    {"LSTM", 3, 3, kRecurrentBias},
    {"MatMul", 1, 1, kProductWeight},
    {"OneHot", 1, kAll, kSetting},
    {"Pad", 1, kAll, kSetting},
    {"QuantizeLinear", 1, kAll, kSetting},
    {"RNN", 1, 2, kRecurrentWeight},
    {"RNN", 3, 3, kRecurrentBias},
    {"Range", 0, kAll, kSetting},
    {"Reshape", 1, 1, kSetting},
    {"Resize", 1, kAll, kSetting},
    {"Slice", 1, kAll, kSetting},
    {"Tile", 1, 1, kSetting},
    {"TopK", 1, 1, kSetting},
    {"Upsample", 1, kAll, kSetting},
};

}  // namespace

std::vector<uint8_t> value_uses(const onnx::GraphProto& graph, const Dataflow& flow) {
  std::vector<uint8_t> uses(flow.values.size(), 0);
  for (const onnx::ValueInfoProto& output : graph.output()) uses[flow.by_name.at(output.name())] |= kOperand;
  for (auto node = flow.order.rbegin(); node != flow.order.rend(); ++node) {
    const onnx::NodeProto& proto = graph.node(static_cast<int>(*node));
    const bool standard = proto.domain().empty() || proto.domain() == "ai.onnx";
    const auto inputs = flow.inputs(*node);
    const auto outputs = flow.outputs(*node);
    if (standard && proto.op_type() == "Identity" && inputs.size() == 1 && outputs.size() == 1) {
      if (inputs[0] != kAbsent && outputs[0] != kAbsent) uses[inputs[0]] |= uses[outputs[0]];
      continue;
    }
    const auto slots = std::equal_range(std::begin(kSlots), std::end(kSlots), SlotUse{proto.op_type(), 0, 0, kOperand},
                                        [](const SlotUse& a, const SlotUse& b) { return a.type < b.type; });
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kAbsent) continue;
      uint8_t use = kOperand;
      for (auto slot = slots.first; standard && slot != slots.second; ++slot) {
        if (i >= slot->first && i <= slot->last) use = slot->use;
      }
      uses[inputs[i]] |= use;
    }
  }
  return uses;
}

}  // namespace forerun::ingest
