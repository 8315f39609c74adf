// RawEvent: one event of a Chrome trace as the file has it; its strings are the text between the quotes, escapes and all,
// and live as long as the block they were parsed from.
//
//   {"ph": "X", "cat": "kernel", "name": "volta_sgemm", "pid": 0, "tid": 7, "ts": 1712.25, "dur": 12.5,
//    "args": {"External id": 12, "device": 0, "stream": 7, "correlation": 91, "grid": [1, 2, 1], ...}}
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace forerun {

// A process or thread: a number, or a text ("Spans", "stream 7") where `text` is not empty.
struct RawId {
  int64_t number = 0;
  std::string_view text;
};

struct RawEvent {
  char phase = 0;
  std::string_view category, name;
  RawId process, thread;
  std::optional<int64_t> start, duration;  // nanoseconds
  bool bad_time = false;                   // "ts" or "dur" is there and is no number

  // Of "args".
  int64_t correlation = -1, external_id = -1, sequence = -1, forward_thread = -1, bytes = -1;
  std::optional<int64_t> device, stream;
  int64_t python_id = -1;
  std::string_view label;  // args.name of metadata events
  std::string_view dims, types, strides, values, module, stack;
  std::array<uint32_t, 3> grid{}, block{};
  int64_t registers = 0, shared_memory = 0;
  bool has_grid = false;
  std::string_view sync_kind;
  int64_t wait_on_stream = -1, record_correlation = -1, wait_event = -1;
  bool has_collective = false;
  std::string_view collective_name, dtype, group, group_description, ranks, in_splits, out_splits;
  int64_t in_elements = -1, out_elements = -1, group_size = -1, rank_start = -1, rank_stride = -1;
};

}  // namespace forerun
