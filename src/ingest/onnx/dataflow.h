// Dataflow of an ONNX graph: values by dense id, who makes and who uses each, and an order of the nodes that respects
// it.
//
// Finds the faults of the structure: values nobody makes, values made twice, cycles. Linear in the size of the graph
// (n log n where the file is not in order). Subgraphs of If, Loop and Scan are not looked into.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ingest/onnx/onnx_proto.h"

namespace forerun::ingest {

using ValueIndex = uint32_t;
constexpr ValueIndex kAbsent = 0xffffffff;  // an optional input or output that the node leaves out
constexpr uint32_t kNobody = 0xffffffff;

struct DataflowValue {
  std::string_view name;        // of the proto, which must outlive this
  uint32_t producer = kNobody;  // node; nobody: a graph input or an initializer
  uint32_t uses = 0;            // by nodes and as graph output
  uint32_t first_user = kNobody;
};

struct Dataflow {
  std::vector<DataflowValue> values;  // graph inputs, then initializers, then outputs of nodes
  std::vector<uint32_t> order;        // nodes, each after the makers of its inputs; file order where that will do
  std::unordered_map<std::string_view, ValueIndex> by_name;

  [[nodiscard]] std::span<const ValueIndex> inputs(uint32_t node) const {
    return {operands.data() + first_operand[node], first_output[node] - first_operand[node]};
  }
  [[nodiscard]] std::span<const ValueIndex> outputs(uint32_t node) const {
    return {operands.data() + first_output[node], first_operand[node + 1] - first_output[node]};
  }

  std::vector<ValueIndex> operands;
  std::vector<uint32_t> first_operand;  // by node, and one past the last
  std::vector<uint32_t> first_output;   // by node
};

// Errors have no file in `where`, only the node.
Result<Dataflow> trace_dataflow(const onnx::GraphProto& graph);

// The name of a sparse initializer is that of its values.
const std::string& name_of(const onnx::SparseTensorProto& tensor);

// "node 12 'conv1' (Conv)", safe to print.
std::string label_of(const onnx::NodeProto& node, size_t index);

// A name from the file, short, without control characters and valid UTF-8.
std::string printable(std::string_view text, size_t limit = 96);

}  // namespace forerun::ingest
