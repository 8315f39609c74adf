// Results of trainings whose weights are not kept: data/weights/SUITE/ablations.jsonl, one JSON object a line, as
// `forerun-train` prints it last, with `label` added; and the row of iterations_alone.h. Where each was trained, when and how stands in the README beside them.
//
//   {"label": "ets-gru", "predictor": "ets", "validation_error": 0.09, "seconds": 110, "device": "cuda:0", "date": "2026-11-16", "data": "...",
//    "test": [{"quantity": "iteration_ms", "all": {"count": 176, "mre": 0.1, "median": 0.08, ...}}]}
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/accuracy/evaluation.h"

namespace forerun {

// Rows of a file; none where there is no such file. Those of other data than `data` (SuiteResult::data) are stale. A line that
// cannot be read, or is of a random split, is an Error that names it.
Result<std::vector<SuiteRow>> read_kept_results(const std::string& path, const std::string& data);

}  // namespace forerun
