// PyTorch's execution traces: JSON of torch.profiler.ExecutionTraceObserver, schemas 1.0.1 to 1.1.1.
//
//   1.0.1            {"name": "aten::slice", "id": 7, "parent": 4, "fw_parent": 0, "seq_id": 440, "tid": 1, "op_schema": "",
//                     "inputs": [[5,6,0,112,4,"cuda:0"],0], "input_shapes": [[112],[]], "input_types": [...], ...}
//   1.0.2 and later  {"id": 3, "name": "...", "ctrl_deps": 2, "inputs": {"values": [], "shapes": [], "types": []},
//                     "outputs": {...}, "attrs": [{"name": "seq_id", "type": "int64", "value": -1}, ...]}
// 1.0.3 adds names of process groups, 1.0.4 kernels of compiled code, 1.1.0 what collectives carry, 1.1.1 strides. Nodes
// are read by the fields they have. A node without id or name is skipped and counted. A collective is the node that the
// backend names ("nccl:all_reduce"); record_param_comms, which is its parent or child, says of which group.
#include <fmt/format.h>
#include <simdjson.h>

#include <unordered_map>

#include "base/json_nesting.h"
#include "ingest/chakra/execution_trace.h"

namespace forerun {
namespace {

namespace dom = simdjson::dom;

class PyTorchNodes {
 public:
  explicit PyTorchNodes(ExecutionTrace& trace) : trace_(trace) {}

  void add(dom::element element) {
    dom::object object;
    uint64_t id = 0;
    std::string_view name;
    if (element.get(object) != simdjson::SUCCESS || object["id"].get(id) != simdjson::SUCCESS ||
        object["name"].get(name) != simdjson::SUCCESS) {
      skip("a node without id or name");
      return;
    }
    if (trace_.dependencies.size() >= UINT32_MAX - 2) return skip("too many dependencies");
    ExecutionNode node;
    node.id = id;
    node.name = trace_.names.intern(name);
    node.kind = kind_of_name(name);
    node.first_dependency = static_cast<uint32_t>(trace_.dependencies.size());
    uint64_t parent = 0;
    if (object["ctrl_deps"].get(parent) == simdjson::SUCCESS || object["parent"].get(parent) == simdjson::SUCCESS) {
      trace_.dependencies.push_back(parent);
      node.control = 1;
    }
    Message message;
    message.is_parameters = name == "record_param_comms";
    dom::object nested;
    if (object["inputs"].get(nested) == simdjson::SUCCESS) {
      node.inputs = {raw(nested["values"]), raw(nested["shapes"]), raw(nested["types"])};
      if (object["outputs"].get(nested) == simdjson::SUCCESS) {
        node.outputs = {raw(nested["values"]), raw(nested["shapes"]), raw(nested["types"])};
      }
      attributes(object, node, message);
    } else {
      node.inputs = {raw(object["inputs"]), raw(object["input_shapes"]), raw(object["input_types"])};
      node.outputs = {raw(object["outputs"]), raw(object["output_shapes"]), raw(object["output_types"])};
      for (const auto field : object) take(field.key, field.value, node, message);
    }
    take_time(object, node);
    trace_.nodes.push_back(node);
    note_collective(static_cast<uint32_t>(trace_.nodes.size() - 1), name, std::move(message));
  }

  void skip(const std::string& what) {
    ++trace_.skipped;
    if (trace_.first_problem.empty()) {
      trace_.first_problem = what + " (node " + std::to_string(trace_.nodes.size() + trace_.skipped) + ")";
    }
  }

  // What record_param_comms says of the collectives that are its parent or its children.
  void finish() {
    std::unordered_map<uint64_t, const Message*> by_node;
    for (const auto& [index, message] : parameters_) {
      const ExecutionNode& node = trace_.nodes[index];
      by_node[node.id] = &message;
      for (const uint64_t parent : trace_.control_of(node)) by_node.try_emplace(parent, &message);
    }
    for (ExecutionCollective& collective : trace_.collectives) {
      const ExecutionNode& node = trace_.nodes[collective.node];
      auto found = by_node.find(node.id);
      for (const uint64_t parent : trace_.control_of(node)) {
        if (found == by_node.end()) found = by_node.find(parent);
      }
      if (found == by_node.end()) continue;
      collective.group = found->second->group;
      collective.dtype = found->second->dtype;
      collective.group_size = found->second->group_size;
    }
  }

 private:
  struct Message {
    bool is_parameters = false;
    std::string group, dtype;
    int64_t group_size = -1;
  };

  NameId raw(simdjson::simdjson_result<dom::element> value) {
    dom::element element;
    if (value.get(element) != simdjson::SUCCESS) return {};
    return trace_.names.intern(std::string(simdjson::minify(element)));
  }

  void attributes(dom::object object, ExecutionNode& node, Message& message) {
    dom::array list;
    if (object["attrs"].get(list) != simdjson::SUCCESS) return;
    for (const dom::element element : list) {
      dom::object attribute;
      std::string_view name;
      dom::element value;
      if (element.get(attribute) == simdjson::SUCCESS && attribute["name"].get(name) == simdjson::SUCCESS &&
          attribute["value"].get(value) == simdjson::SUCCESS) {
        take(name, value, node, message);
      }
    }
  }

  void take(std::string_view name, dom::element value, ExecutionNode& node, Message& message) {
    int64_t number = 0;
    std::string_view text;
    if (value.get(number) == simdjson::SUCCESS) {
      if (name == "seq_id") node.sequence = number;
      if (name == "fw_parent" && number > 0) node.forward_parent = number;
      if (name == "tid") node.thread = number;
      if (name == "pg_size") message.group_size = number;
    } else if (value.get(text) == simdjson::SUCCESS) {
      if (name == "op_schema" && !text.empty()) node.schema = trace_.names.intern(text);
      if (name == "pg_name") message.group = text;
      if (name == "dtype") message.dtype = text;
    }
  }

  // Times that converters add; microseconds.
  static void take_time(dom::object object, ExecutionNode& node) {
    double time = 0;
    constexpr double kLongest = 9e15;
    if (object["ts"].get(time) == simdjson::SUCCESS && time >= 0 && time < kLongest) {
      node.start_us = static_cast<int64_t>(time);
    }
    for (const char* name : {"inclusive_dur", "exclusive_dur", "dur"}) {
      if (object[name].get(time) != simdjson::SUCCESS || !(time >= 0 && time < kLongest)) continue;
      node.duration_us = static_cast<int64_t>(time);
      break;
    }
  }

  void note_collective(uint32_t index, std::string_view name, Message message) {
    if (message.is_parameters) {
      parameters_.emplace_back(index, std::move(message));
      return;
    }
    const size_t colon = name.find(':');
    if (trace_.nodes[index].kind != NodeKind::communication || name.starts_with("c10d::")) return;
    ExecutionCollective made;
    made.node = index;
    made.name = name.substr(colon + 1);
    const NameId values = trace_.nodes[index].inputs.values;
    made.bytes = values.valid() ? tensor_bytes(trace_.names[values]) : -1;
    trace_.collectives.push_back(std::move(made));
  }

  ExecutionTrace& trace_;
  std::vector<std::pair<uint32_t, Message>> parameters_;
};

}  // namespace

Result<ExecutionTrace> parse_pytorch_nodes(std::string_view json, const std::string& name) {
  constexpr const char* kRemedy = "record it with torch.profiler.ExecutionTraceObserver, and stop the observer";
  dom::parser parser;
  dom::element document;
  if (const auto error = parser.parse(json.data(), json.size()).get(document); error != simdjson::SUCCESS) {
    JsonNesting nesting;
    nesting.read(json);
    if (!nesting.closed()) {
      return Error{fmt::format("the file is truncated: its JSON ends at byte {}, before its last bracket", json.size()),
                   name, std::string("copy it again, or ") + kRemedy};
    }
    return Error{std::string("not valid JSON: ") + simdjson::error_message(error), name, kRemedy};
  }
  dom::array nodes;
  if (document["nodes"].get(nodes) != simdjson::SUCCESS) return Error{"there is no list of nodes", name, kRemedy};
  ExecutionTrace trace;
  trace.file = name;
  std::string_view schema;
  if (document["schema"].get(schema) == simdjson::SUCCESS) trace.schema = schema;
  int64_t process = 0;
  if (document["pid"].get(process) == simdjson::SUCCESS) trace.process = process;
  PyTorchNodes reader(trace);
  for (const dom::element element : nodes) reader.add(element);
  reader.finish();
  if (trace.nodes.empty()) return Error{"no node could be read", name, kRemedy};
  return trace;
}

}  // namespace forerun
