// ExecutionTrace: what a framework executed, as nodes with what each depends on; PyTorch's execution traces and Chakra.
//
// Where a profiler trace says when things ran, an execution trace says what ran on what: every op with its tensors (ids,
// sizes, shapes, types), the op around it (control dependency), the nodes whose results it reads (data dependencies, in
// Chakra files), and the messages of collectives. Times are there where a converter added them. Shapes, types and values
// are kept as the file has them: "[[64, 3, 7, 7]]".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/interner.h"
#include "base/result.h"

namespace forerun {

enum class NodeKind : uint8_t { label, op, kernel, memory, communication, other };
constexpr size_t kNodeKinds = static_cast<size_t>(NodeKind::other) + 1;
std::string_view name_of(NodeKind kind);

struct NodeTensors {
  NameId values, shapes, types;  // a tensor's value: [tensor id, storage id, offset, elements, bytes of one, "cuda:0"]
};

struct ExecutionNode {
  uint64_t id = 0;
  NameId name;
  NodeKind kind = NodeKind::other;
  uint32_t first_dependency = 0;  // in ExecutionTrace::dependencies: control, then data
  uint32_t control = 0, data = 0;
  int64_t start_us = -1, duration_us = -1;  // -1: not told
  int64_t sequence = -1;                    // of autograd
  int64_t forward_parent = -1;              // node of the forward pass that a backward one belongs to
  int64_t thread = -1;
  NameId schema;  // "aten::slice.Tensor(...) -> ..."
  NodeTensors inputs, outputs;
};

struct ExecutionCollective {
  uint32_t node = 0;         // index into nodes
  std::string name;          // "all_reduce"
  int64_t bytes = -1;        // of a rank's message; -1: not told
  std::string group, dtype;  // may be empty
  int64_t group_size = -1;
};

struct ExecutionTrace {
  std::string file;
  bool chakra = false;  // a Chakra file; else PyTorch's JSON
  std::string schema;   // "1.1.0-chakra.0.0.4"
  int64_t process = -1;
  StringTable names;
  std::vector<ExecutionNode> nodes;  // in the order of the file
  std::vector<uint64_t> dependencies;
  std::vector<ExecutionCollective> collectives;
  int64_t skipped = 0;        // nodes that could not be understood
  bool truncated = false;     // the file ends within a node
  std::string first_problem;  // of the first node skipped: what and where

  [[nodiscard]] std::span<const uint64_t> control_of(const ExecutionNode& node) const {
    return std::span(dependencies).subspan(node.first_dependency, node.control);
  }
  [[nodiscard]] std::span<const uint64_t> data_of(const ExecutionNode& node) const {
    return std::span(dependencies).subspan(node.first_dependency + node.control, node.data);
  }
  [[nodiscard]] const std::string& name(const ExecutionNode& node) const { return names[node.name]; }
};

// Bytes of the tensors among values as they stand in a trace, JSON or Python's notation; 0 where there are none.
int64_t tensor_bytes(std::string_view values);

// What a node of such a name is; of ops and labels a name is all that PyTorch's traces tell.
NodeKind kind_of_name(std::string_view name);

// Plain, gzip or Zstandard. An Error where the file cannot be read, is cut short or is no execution trace. `partial`: of a
// Chakra file cut short, what came before the cut. (One cut between two nodes cannot be told from a whole one.)
Result<ExecutionTrace> read_execution_trace(const std::string& path, bool partial = false);
Result<ExecutionTrace> execution_trace_from_bytes(std::string_view bytes, const std::string& name);

// Whether bytes begin as a Chakra file does; they may be cut within a node.
bool looks_like_chakra(std::string_view beginning);

// The two formats. `name` stands for the file.
Result<ExecutionTrace> parse_pytorch_nodes(std::string_view json, const std::string& name);
Result<ExecutionTrace> parse_chakra_nodes(std::string_view bytes, const std::string& name);

}  // namespace forerun
