// Forerun as it would be had it learned from measured iterations alone, as the papers' predictors did: its trees grown without the op
// samples. Growing them takes most of a minute, so that the row of the suite h200 is kept (data/evaluations) and shown from there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/work_control.h"
#include "lab/accuracy/evaluation.h"
#include "predict/cost_models.h"
#include "records/data_scan.h"

namespace forerun {

inline constexpr const char* kIterationsAlone = "forerun, iterations alone";

// The cost models of the data folder with trees grown from the training iterations of data/h200 and nothing else.
Result<CostModels> cost_models_of_iterations(const std::function<void(const DataProblem&)>& problem,
                                             const WorkControl& control);

// Keeps the row for later calls: data/evaluations/iterations-alone.jsonl. `data` is what it was judged on (SuiteResult::data).
Status keep_iterations_alone(const SuiteRow& row, const std::string& data);
// The row that was kept; none where it was not. Stale where it was judged on other data or with other cost models.
Result<std::vector<SuiteRow>> kept_iterations_alone(const std::string& data);

}  // namespace forerun
