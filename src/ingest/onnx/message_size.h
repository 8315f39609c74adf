// Bounds what parsing an ONNX message would allocate, before it is parsed.
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

// Bytes that are no protobuf message pass: the parser says so.
Status check_message_size(std::string_view bytes, int64_t max_fields = kMaxFields);

}  // namespace forerun::ingest
