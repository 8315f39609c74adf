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

}  // namespace

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
