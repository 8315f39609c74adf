// What can be said of an ONNX message before it is parsed: whether it is one, and a bound of what parsing would allocate.
//
// An empty submessage takes two bytes of the file and some hundred of memory, so a small file can ask for more memory
// than there is. This walks the wire format of the graph and its nodes without building anything and counts their
// fields.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace forerun::ingest {

constexpr int64_t kMaxFields = 150'000'000;  // about 16 GiB in protobuf's classes, 3 * 10^7 nodes

// Whether bytes begin as a ModelProto does: its fields up to the graph's, with the versions of the format or of the ops
// before or at its side. They may be cut anywhere behind the graph's beginning.
bool looks_like_model(std::string_view beginning);

// Bytes that are no protobuf message pass: the parser says so.
Status check_message_size(std::string_view bytes, int64_t max_fields = kMaxFields);

}  // namespace forerun::ingest
