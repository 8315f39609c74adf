// What a prediction has too many rows of to be told with it, as JSON in columns: its ops, and its memory over time. The
// schemas are docs/schema/ask/ops.json and memory.json.
#pragma once

#include <string>
#include <vector>

#include "api/op_table.h"
#include "memory/memory_timeline.h"
#include "predict/predict.h"

namespace forerun {

std::string to_json(const std::vector<PredictedOp>& ops);

std::string to_json(const MemoryTimeline& timeline, const Prediction& prediction);

// The same with about `most` samples: of each stretch the one with most memory, so that no height is lost.
MemoryTimeline thinned(const MemoryTimeline& timeline, size_t most);

}  // namespace forerun
