// Chakra execution traces: a sequence of protobuf messages, each behind its length; first what holds for all, then nodes.
//
// Numbers of the fields (MLCommons' Chakra schema, 0.0.4):
//   metadata   1 version, 2 attribute ("schema", "pid", ...)
//   node       1 id, 2 name, 3 type, 4 control dependencies, 5 data dependencies, 6 start and 7 duration in microseconds,
//              8 inputs, 9 outputs (each 1 values, 2 shapes, 3 types, as text), 10 attribute
//   attribute  1 name, 3 double, 5 float, 7 int32, 9 int64, 11 uint32, 13 uint64, 15 sint32, 17 sint64, 27 bool, 29 string
// Types of nodes: 1 metadata, 2 load, 3 store, 4 computation, 5 send, 6 receive, 7 collective. What else there may be is
// passed over. A message that does not decode is skipped and counted.
#include <array>
#include <cstring>
#include <optional>

#include "ingest/chakra/execution_trace.h"

namespace forerun {
namespace {

struct WireField {
  uint32_t number = 0;
  uint32_t type = 0;  // 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
  uint64_t value = 0;
  std::string_view bytes;
};

// The fields of one message.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] size_t at() const { return at_; }

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    broken_ = true;
    return std::nullopt;
  }

  std::optional<std::string_view> take(uint64_t size) {
    if (size > bytes_.size() - at_) {
      broken_ = true;
      return std::nullopt;
    }
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  // Nothing at the end, and where the message is broken.
  std::optional<WireField> next() {
    if (at_ >= bytes_.size()) return std::nullopt;
    const auto tag = varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > (1U << 29)) return fail();
    WireField field;
    field.number = static_cast<uint32_t>(*tag >> 3);
    field.type = static_cast<uint32_t>(*tag & 7);
    if (field.type == 0) {
      const auto value = varint();
      if (!value) return fail();
      field.value = *value;
      return field;
    }
    uint64_t size = field.type == 1 ? 8 : 4;
    if (field.type == 2) {
      const auto length = varint();
      if (!length) return fail();
      size = *length;
    } else if (field.type != 1 && field.type != 5) {
      return fail();
    }
    const auto bytes = take(size);
    if (!bytes) return fail();
    field.bytes = *bytes;
    return field;
  }

 private:
  std::optional<WireField> fail() {
    broken_ = true;
    return std::nullopt;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool broken_ = false;
};

struct ChakraAttribute {
  std::string_view name, text;
  int64_t number = 0;
};

std::optional<ChakraAttribute> attribute_of(std::string_view bytes) {
  WireReader reader(bytes);
  ChakraAttribute made;
  while (const auto field = reader.next()) {
    if (field->number == 1 && field->type == 2) made.name = field->bytes;
    if (field->number == 29 && field->type == 2) made.text = field->bytes;
    if (field->type != 0) continue;
    const bool zigzag = field->number == 15 || field->number == 17;
    const uint64_t value = zigzag ? (field->value >> 1) ^ (~(field->value & 1) + 1) : field->value;
    std::memcpy(&made.number, &value, sizeof value);
  }
  return reader.broken() ? std::nullopt : std::optional(made);
}

constexpr std::array<const char*, 10> kChakraCollectives = {
    "all_reduce", "reduce",         "all_gather",           "gather", "scatter", "broadcast",
    "all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier"};

class ChakraNodes {
 public:
  explicit ChakraNodes(ExecutionTrace& trace) : trace_(trace) {}

  // False where the message is no metadata.
  bool metadata(std::string_view bytes) {
    WireReader reader(bytes);
    while (const auto field = reader.next()) {
      if (field->type != 2 || field->number > 2) return false;
      if (field->number == 1) trace_.schema = field->bytes;
      if (field->number != 2) continue;
      const auto attribute = attribute_of(field->bytes);
      if (!attribute || attribute->name.empty()) return false;
      if (attribute->name == "schema") trace_.schema = attribute->text;
      if (attribute->name == "pid") trace_.process = attribute->number;
    }
    return !reader.broken();
  }

  bool add(std::string_view bytes) {
    WireReader reader(bytes);
    ExecutionNode node;
    uint64_t type = 0;
    bool named = false;
    std::vector<uint64_t> control, data;
    message_ = {};
    while (const auto field = reader.next()) {
      switch (field->number) {
        case 1: node.id = field->value; break;
        case 2:
          named = field->type == 2;
          node.name = trace_.names.intern(field->bytes);
          break;
        case 3: type = field->value; break;
        case 4: add_ids(*field, control); break;
        case 5: add_ids(*field, data); break;
        case 6: node.start_us = time_of(field->value); break;
        case 7: node.duration_us = time_of(field->value); break;
        case 8: tensors(field->bytes, node.inputs); break;
        case 9: tensors(field->bytes, node.outputs); break;
        case 10: take(field->bytes, node); break;
        default: break;
      }
    }
    if (reader.broken() || broken_ || !named ||
        trace_.dependencies.size() + control.size() + data.size() > UINT32_MAX) {
      broken_ = false;
      return false;
    }
    node.kind = kind_of(type);
    node.first_dependency = static_cast<uint32_t>(trace_.dependencies.size());
    node.control = static_cast<uint32_t>(control.size());
    node.data = static_cast<uint32_t>(data.size());
    trace_.dependencies.insert(trace_.dependencies.end(), control.begin(), control.end());
    trace_.dependencies.insert(trace_.dependencies.end(), data.begin(), data.end());
    trace_.nodes.push_back(node);
    if (message_.sized) add_collective(type);
    return true;
  }

 private:
  struct Message {
    bool host = true, sized = false;
    int64_t bytes = -1, kind = -1;
    std::string group;
  };

  static int64_t time_of(uint64_t value) { return value > (uint64_t{1} << 53) ? -1 : static_cast<int64_t>(value); }

  // One id, or several packed.
  void add_ids(const WireField& field, std::vector<uint64_t>& ids) {
    if (field.type == 0) {
      ids.push_back(field.value);
      return;
    }
    WireReader packed(field.bytes);
    while (packed.at() < field.bytes.size()) {
      const auto id = packed.varint();
      if (!id) {
        broken_ = true;
        return;
      }
      ids.push_back(*id);
    }
  }

  void tensors(std::string_view bytes, NodeTensors& into) {
    WireReader reader(bytes);
    while (const auto field = reader.next()) {
      if (field->type != 2) continue;
      if (field->number == 1) into.values = trace_.names.intern(field->bytes);
      if (field->number == 2) into.shapes = trace_.names.intern(field->bytes);
      if (field->number == 3) into.types = trace_.names.intern(field->bytes);
    }
    broken_ = broken_ || reader.broken();
  }

  void take(std::string_view bytes, ExecutionNode& node) {
    const auto attribute = attribute_of(bytes);
    if (!attribute) {
      broken_ = true;
      return;
    }
    const std::string_view name = attribute->name;
    if (name == "is_cpu_op") message_.host = attribute->number != 0;
    if (name == "seq_id") node.sequence = attribute->number;
    if (name == "tid") node.thread = attribute->number;
    if (name == "fw_parent" && attribute->number > 0) node.forward_parent = attribute->number;
    if (name == "op_schema" && !attribute->text.empty()) node.schema = trace_.names.intern(attribute->text);
    if (name == "comm_type") message_.kind = attribute->number;
    if (name == "pg_name") message_.group = attribute->text;
    if (name == "comm_size") {
      message_.sized = true;
      message_.bytes = attribute->number;
    }
  }

  [[nodiscard]] NodeKind kind_of(uint64_t type) const {
    switch (type) {
      case 1: return NodeKind::label;
      case 2:
      case 3: return NodeKind::memory;
      case 4: return message_.host ? NodeKind::op : NodeKind::kernel;
      case 5:
      case 6:
      case 7: return NodeKind::communication;
      default: return NodeKind::other;
    }
  }

  void add_collective(uint64_t type) {
    ExecutionCollective made;
    made.node = static_cast<uint32_t>(trace_.nodes.size() - 1);
    made.name = type == 5 ? "send" : type == 6 ? "receive" : "collective";
    if (type == 7 && message_.kind >= 0 && message_.kind < static_cast<int64_t>(kChakraCollectives.size())) {
      made.name = kChakraCollectives[static_cast<size_t>(message_.kind)];
    }
    made.bytes = message_.bytes < 0 || message_.bytes > (int64_t{1} << 53) ? -1 : message_.bytes;
    made.group = message_.group;
    trace_.collectives.push_back(std::move(made));
  }

  ExecutionTrace& trace_;
  Message message_;  // of the node being read
  bool broken_ = false;
};

}  // namespace

bool looks_like_chakra(std::string_view beginning) {
  WireReader file(beginning);
  ExecutionTrace trace;
  const auto length = file.varint();
  const auto first = length ? file.take(*length) : std::nullopt;
  const bool versioned = first && ChakraNodes(trace).metadata(*first) && !trace.schema.empty() &&
                         trace.schema[0] >= '0' && trace.schema[0] <= '9';
  return versioned || parse_chakra_nodes(beginning, "").ok();
}

Result<ExecutionTrace> parse_chakra_nodes(std::string_view bytes, const std::string& name) {
  ExecutionTrace trace;
  trace.file = name;
  trace.chakra = true;
  const Error foreign = {"neither JSON nor a Chakra execution trace", name,
                         "give a file of torch.profiler, of its ExecutionTraceObserver, or of Chakra's converter"};
  WireReader file(bytes);
  ChakraNodes nodes(trace);
  const auto length = file.varint();
  const auto first = length ? file.take(*length) : std::nullopt;
  if (!first || !nodes.metadata(*first)) return foreign;
  while (file.at() < bytes.size()) {
    const size_t at = file.at();
    const auto size = file.varint();
    const auto message = size ? file.take(*size) : std::nullopt;
    if (!message) {
      trace.truncated = true;
      break;
    }
    if (nodes.add(*message)) continue;
    ++trace.skipped;
    if (trace.first_problem.empty())
      trace.first_problem = "a node that does not decode (byte " + std::to_string(at) + ")";
  }
  if (trace.nodes.empty() || trace.skipped > static_cast<int64_t>(trace.nodes.size())) return foreign;
  return trace;
}

}  // namespace forerun
