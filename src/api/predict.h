// "How will this training run go?": iteration time and memory of a model, or of every run of a file of records. The
// question of `forerun predict`; the stage predict/ answers it.
//
// What a user names as a model is told apart by `model_file` (predict/model_file.h), and how it is trained is parsed by
// `parse_setup` (predict/setup_text.h): both once, before the question is asked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/prices.h"
#include "base/work_control.h"
#include "predict/compiled.h"
#include "predict/kept_runs.h"
#include "predict/memory_text.h"
#include "predict/model_file.h"
#include "predict/model_name.h"
#include "predict/predict.h"
#include "predict/setup_text.h"

namespace forerun {

struct PredictRequest {
  ModelRequest model;
  std::string gpu;  // by name; empty: usual_gpu
  MemoryQuestion memory;
  JobLength job;
  Prices prices;
  bool remedies = true;  // where the host bounds it, also what would take the bound away: further predictions
  bool eager_beside =
      true;  // of a model that is compiled, the eager prediction with the compiled one beside it; false: it alone
  bool memory_log = false;  // also every allocation and free of the iteration
  size_t most_ops_on_one_thread =
      0;  // an iteration of no more is not divided: a second thread costs a busy machine more than it brings
  std::function<void()> built =
      {};  // hears that the iteration is derived, before anything is predicted of it; may be null
};

struct PredictAnswer {
  Prediction prediction;
  std::optional<PredictedLog> memory_log;
  std::optional<CompiledPrediction> compiled;  // where it was asked beside the eager one
};

Result<PredictAnswer> predict(const PredictRequest& request, const CostModels& cost_models,
                              const WorkControl& control = {});

// The same by another source of iterations: one over `build_zoo_run` takes names of the zoo alone, and needs none of the code
// that reads files.
Result<PredictAnswer> predict_built(const PredictRequest& request, const RunSource& build,
                                    const CostModels& cost_models, const WorkControl& control = {});

// Runs that were recorded, predicted as they were recorded.
struct PredictRecordsRequest {
  std::string file;
  std::string gpu;    // empty: the one that each record names
  RecordSizes sizes;  // another batch or length than was recorded
  MemoryQuestion memory;
  JobLength job;
  Prices prices;
  bool errors = false;  // also how far predictions lie from what was measured, where the GPU is the recorded one
};

struct PredictRecordsAnswer {
  std::vector<Prediction> predictions;  // in the order of the file
  int64_t bad = 0;                      // records that could not be predicted
  std::vector<ErrorSample> errors;
};

// `handlers` hear of each record as it comes.
Result<PredictRecordsAnswer> predict_records(const PredictRecordsRequest& request, const CostModels& cost_models,
                                             const RecordHandlers& handlers, const WorkControl& control = {});

}  // namespace forerun
