#include "ingest/onnx/dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_set>

namespace forerun::ingest {
namespace {

// The length of the UTF-8 character at the start of `text`, 0 where the bytes are none.
size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead >= 0xf5 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  const auto second = static_cast<unsigned char>(length > 1 ? text[1] : 0);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second >= 0xa0;
  return overlong || surrogate || (lead == 0xf4 && second >= 0x90) ? 0 : length;
}

class Tracer {
 public:
  explicit Tracer(const onnx::GraphProto& graph) : graph_(graph) {}

  Result<Dataflow> run() {
    for (const auto& step :
         {&Tracer::name_roots, &Tracer::name_outputs, &Tracer::resolve_inputs, &Tracer::order_nodes}) {
      if (Status done = (this->*step)(); !done) return done.error();
    }
    return std::move(flow_);
  }

 private:
  bool define(std::string_view name, uint32_t producer) {
    const auto [found, added] = flow_.by_name.try_emplace(name, static_cast<ValueIndex>(flow_.values.size()));
    if (added) flow_.values.push_back({.name = name, .producer = producer});
    return added;
  }

  static Error made_twice(std::string_view name, std::string where) {
    return {fmt::format("value '{}' is defined twice", printable(name)), std::move(where),
            "every value of an ONNX graph has one definition; export the model again"};
  }

  Status name_roots() {
    const auto nodes = static_cast<size_t>(graph_.node_size());
    flow_.by_name.reserve(nodes + static_cast<size_t>(graph_.initializer_size() + graph_.input_size()));
    for (const onnx::ValueInfoProto& input : graph_.input()) {
      if (!define(input.name(), kNobody)) return made_twice(input.name(), "graph inputs");
    }
    const size_t inputs = flow_.values.size();
    const auto initializer = [&](std::string_view name) {
      if (define(name, kNobody)) return true;  // the same name among the inputs is an input with a default
      return flow_.by_name.at(name) < inputs && defaulted_.insert(name).second;
    };
    for (const onnx::TensorProto& tensor : graph_.initializer()) {
      if (!initializer(tensor.name())) return made_twice(tensor.name(), "initializers");
    }
    for (const onnx::SparseTensorProto& tensor : graph_.sparse_initializer()) {
      if (!initializer(name_of(tensor))) return made_twice(name_of(tensor), "initializers");
    }
    return {};
  }

  Status name_outputs() {
    uint32_t index = 0;
    for (const onnx::NodeProto& node : graph_.node()) {
      for (const std::string& name : node.output()) {
        output_values_.push_back(name.empty() ? kAbsent : static_cast<ValueIndex>(flow_.values.size()));
        if (!name.empty() && !define(name, index)) return made_twice(name, label_of(node, index));
      }
      ++index;
    }
    return {};
  }

  Status resolve_inputs() {
    uint32_t index = 0;
    auto next_output = output_values_.begin();
    for (const onnx::NodeProto& node : graph_.node()) {
      flow_.first_operand.push_back(static_cast<uint32_t>(flow_.operands.size()));
      for (const std::string& name : node.input()) {
        const ValueIndex value = find(name);
        if (value == kAbsent && !name.empty()) return made_by_nobody(name, label_of(node, index));
        flow_.operands.push_back(value);
        if (value != kAbsent) use(value, index);
      }
      flow_.first_output.push_back(static_cast<uint32_t>(flow_.operands.size()));
      flow_.operands.insert(flow_.operands.end(), next_output, next_output + node.output_size());
      next_output += node.output_size();
      ++index;
    }
    flow_.first_operand.push_back(static_cast<uint32_t>(flow_.operands.size()));
    for (const onnx::ValueInfoProto& output : graph_.output()) {
      const ValueIndex value = find(output.name());
      if (value == kAbsent) return made_by_nobody(output.name(), "graph outputs");
      use(value, kNobody);
    }
    return {};
  }

  [[nodiscard]] ValueIndex find(std::string_view name) const {
    const auto found = name.empty() ? flow_.by_name.end() : flow_.by_name.find(name);
    return found == flow_.by_name.end() ? kAbsent : found->second;
  }

  void use(ValueIndex value, uint32_t user) {
    DataflowValue& used = flow_.values[value];
    if (used.uses++ == 0) used.first_user = user;
  }

  static Error made_by_nobody(std::string_view name, std::string where) {
    return {fmt::format("value '{}' is used but produced by no node, input or initializer", printable(name)),
            std::move(where), "the file is incomplete; export the model again"};
  }

  [[nodiscard]] bool in_file_order() const {
    const auto nodes = static_cast<uint32_t>(graph_.node_size());
    for (uint32_t node = 0; node < nodes; ++node) {
      for (const ValueIndex input : flow_.inputs(node)) {
        if (input == kAbsent) continue;
        const uint32_t producer = flow_.values[input].producer;
        if (producer != kNobody && producer >= node) return false;
      }
    }
    return true;
  }

  Status order_nodes() {
    const auto nodes = static_cast<uint32_t>(graph_.node_size());
    flow_.order.reserve(nodes);
    if (in_file_order()) {
      for (uint32_t node = 0; node < nodes; ++node) flow_.order.push_back(node);
      return {};
    }
    return sort_nodes(nodes);
  }

  // Kahn's algorithm; among the nodes that are ready, the first of the file comes first.
  Status sort_nodes(uint32_t nodes) {
    std::vector<uint32_t> waiting(nodes, 0);
    std::vector<uint32_t> first_edge(nodes + 1, 0);
    const auto each_edge = [&](const auto& visit) {
      for (uint32_t node = 0; node < nodes; ++node) {
        for (const ValueIndex input : flow_.inputs(node)) {
          const uint32_t producer = input == kAbsent ? kNobody : flow_.values[input].producer;
          if (producer != kNobody) visit(producer, node);
        }
      }
    };
    each_edge([&](uint32_t from, uint32_t to) { ++first_edge[from + 1], ++waiting[to]; });
    for (uint32_t node = 0; node < nodes; ++node) first_edge[node + 1] += first_edge[node];
    std::vector<uint32_t> successors(first_edge[nodes]);
    std::vector<uint32_t> filled(first_edge.begin(), first_edge.end() - 1);
    each_edge([&](uint32_t from, uint32_t to) { successors[filled[from]++] = to; });

    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (uint32_t node = 0; node < nodes; ++node) {
      if (waiting[node] == 0) ready.push(node);
    }
    while (!ready.empty()) {
      const uint32_t node = ready.top();
      ready.pop();
      flow_.order.push_back(node);
      for (uint32_t i = first_edge[node]; i < first_edge[node + 1]; ++i) {
        if (--waiting[successors[i]] == 0) ready.push(successors[i]);
      }
    }
    if (flow_.order.size() == nodes) return {};
    return cycle_error(waiting);
  }

  // Among the nodes left over, walking back along inputs must come round: where it does, there is a cycle.
  [[nodiscard]] Error cycle_error(const std::vector<uint32_t>& waiting) const {
    auto node = static_cast<uint32_t>(std::find_if(waiting.begin(), waiting.end(), [](uint32_t w) { return w > 0; }) -
                                      waiting.begin());
    std::vector<bool> seen(waiting.size());
    while (!seen[node]) {
      seen[node] = true;
      for (const ValueIndex input : flow_.inputs(node)) {
        const uint32_t producer = input == kAbsent ? kNobody : flow_.values[input].producer;
        if (producer == kNobody || waiting[producer] == 0) continue;
        node = producer;
        break;
      }
    }
    return {"the graph has a cycle through this node", label_of(graph_.node(static_cast<int>(node)), node),
            "ONNX graphs must be acyclic; export the model again"};
  }

  const onnx::GraphProto& graph_;
  Dataflow flow_;
  std::vector<ValueIndex> output_values_;           // of all nodes, in order
  std::unordered_set<std::string_view> defaulted_;  // graph inputs that have an initializer
};

}  // namespace

Result<Dataflow> trace_dataflow(const onnx::GraphProto& graph) { return Tracer(graph).run(); }

const std::string& name_of(const onnx::SparseTensorProto& tensor) { return tensor.values().name(); }

std::string label_of(const onnx::NodeProto& node, size_t index) {
  const std::string type = node.op_type().empty() ? "no op type" : printable(node.op_type());
  if (node.name().empty()) return fmt::format("node {} ({})", index, type);
  return fmt::format("node {} '{}' ({})", index, printable(node.name()), type);
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (out.size() >= limit) return out + "...";
    const size_t length = character_length(text.substr(at));
    const auto first = static_cast<unsigned char>(text[at]);
    if (length == 0 || first < 0x20 || first == 0x7f) {
      out += '?';
    } else {
      out.append(text.substr(at, length));
    }
    at += std::max<size_t>(length, 1);
  }
  return out;
}

}  // namespace forerun::ingest
