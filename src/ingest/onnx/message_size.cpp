#include "ingest/onnx/message_size.h"

#include <fmt/format.h>

#include <cstdint>

namespace forerun::ingest {
namespace {

constexpr uint32_t kModelGraph = 7;  // field numbers of onnx.proto
constexpr uint32_t kGraphNode = 1;

// One field of a message: its number and, where it is length-delimited, its contents.
struct Field {
  uint32_t number = 0;
  bool delimited = false;
  std::string_view contents;
};

bool read_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Takes the next field off `bytes`; false at the end and where the format is broken.
bool next_field(std::string_view& bytes, Field& field) {
  uint64_t tag = 0;
  uint64_t length = 0;
  if (bytes.empty() || !read_varint(bytes, tag)) return false;
  field.number = static_cast<uint32_t>(tag >> 3);
  field.delimited = (tag & 7) == 2;
  switch (tag & 7) {
    case 0: return read_varint(bytes, length);
    case 1: length = 8; break;
    case 2:
      if (!read_varint(bytes, length)) return false;
      break;
    case 5: length = 4; break;
    default: return false;  // groups, which ONNX has none of
  }
  if (length > bytes.size()) return false;
  field.contents = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return true;
}

int64_t count_delimited(std::string_view bytes) {
  int64_t count = 0;
  for (Field field; next_field(bytes, field);) count += field.delimited ? 1 : 0;
  return count;
}

// Whether ModelProto has a field of that tag.
bool is_model_tag(uint64_t tag) {
  constexpr uint32_t kVersion = 1, kModelVersion = 5;
  const auto number = static_cast<uint32_t>(tag >> 3);
  if (number == kVersion || number == kModelVersion) return (tag & 7) == 0;
  return (tag & 7) == 2 &&
         ((number >= 2 && number <= 8) || number == 14 || number == 20 || number == 25 || number == 26);
}

// Whether bytes begin as a GraphProto does: with a field of its own, all of which are length-delimited; or end at once.
bool begins_graph(std::string_view bytes) {
  uint64_t tag = 0;
  if (bytes.empty() || !read_varint(bytes, tag)) return bytes.empty();
  const uint64_t number = tag >> 3;
  return (tag & 7) == 2 && (number == 1 || number == 2 || number == 5 || (number >= 10 && number <= 16));
}

}  // namespace

bool looks_like_model(std::string_view bytes) {
  constexpr uint64_t kVersion = 1, kOpsets = 8, kHighestVersion = 1000;
  bool versioned = false, graph = false;
  while (!bytes.empty()) {
    uint64_t tag = 0, value = 0;
    if (!read_varint(bytes, tag) || !is_model_tag(tag) || !read_varint(bytes, value)) break;
    const uint64_t number = tag >> 3;
    if (number == kVersion && value > kHighestVersion) return false;
    versioned = versioned || number == kVersion || number == kOpsets;
    if (number == kModelGraph) {
      if (value > 0 && !begins_graph(bytes)) return false;
      graph = true;
    }
    if (graph && versioned) return true;
    if ((tag & 7) == 0) continue;
    if (value > bytes.size()) return false;
    bytes.remove_prefix(value);
  }
  return false;
}

Status check_message_size(std::string_view bytes, int64_t max_fields) {
  int64_t count = 0;
  Field outer;
  while (next_field(bytes, outer)) {
    ++count;
    if (outer.number != kModelGraph || !outer.delimited) continue;
    std::string_view graph = outer.contents;
    for (Field field; next_field(graph, field);) {
      ++count;
      if (field.delimited) count += field.number == kGraphNode ? count_delimited(field.contents) : 1;
    }
  }
  if (count <= max_fields) return {};
  return Error{fmt::format("the model has {} nodes, operands and other parts, more than the {} that can be handled",
                           count, max_fields),
               "", "split the model, or export it with fewer nodes"};
}

}  // namespace forerun::ingest
