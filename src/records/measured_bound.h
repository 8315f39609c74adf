// What a measured record says at first sight: what bounded it, how it ended, and whether it nearly ran out of memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "ingest/capture/run_record.h"

namespace forerun {

// It succeeded, and its iterations were timed.
bool is_timed(const RunRecord& record);

// What bounds a measured iteration. `unknown`: not measured.
enum class MeasuredBound : uint8_t { gpu, host, unknown };
std::string_view name_of(MeasuredBound bound);
// The GPU, where it is busy for more than nine tenths of the iteration.
MeasuredBound measured_bound(const RunRecord& record);

// "ok", "oom", "failed", or "captured" where nothing was measured.
std::string_view status_text(const RunRecord& record);

// Within a tenth of the GPU's memory, and yet it fitted.
bool near_memory_limit(const RunRecord& record);

}  // namespace forerun
