// What a trace file says beside its events: rank, world size, GPU, and the time its clock counts from.
//
//   "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2, "pg_config": [...]},
//   "deviceProperties": [{"id": 0, "name": "NVIDIA H200", ...}], "baseTimeNanoseconds": 1790857026000000000
//
// Keys are looked for in the text, because the parts around the events are read apart and may be broken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/trace/trace.h"

namespace forerun {

// Where the events begin, behind the "[" of "traceEvents" or of a file that is a list; nothing where it is not in sight.
std::optional<size_t> events_begin(std::string_view text);

// Takes what one part of the file says into the trace. Returns baseTimeNanoseconds where the part has it.
std::optional<int64_t> take_header(std::string_view part, Trace& trace);

// The rank that a file's name tells: "rank-34.json", "worker3_step_12.json", "trace_rank_1.json.gz"; -1 where none.
int64_t rank_of_name(std::string_view file);

}  // namespace forerun
