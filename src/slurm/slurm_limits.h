// "What should Slurm be told about these jobs?": time limits, memory and priorities of jobs that name a model.
//
// A job is described by a row of a CSV file or by a line of key=value. Known keys: id (or job), model, batch,
// iterations, gpus, gpu, duration and how it is trained (the words of setup_text.h); `set` holds further settings of the model's
// family (layers=2;width=64), and a key that is none of these is one of them. A job without a model may state its duration in
// seconds. The step of a gang is that of one GPU with its share of the batch, and what its GPUs say to each other on as
// few nodes as possible.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/work_control.h"
#include "cluster/schedule_predictor.h"
#include "graph/training_run.h"
#include "predict/cost_models.h"

namespace forerun {

// What Slurm is told about a job.
struct JobLimit {
  std::string job;            // its name, or the description it was asked by
  double seconds = 0;         // predicted
  int64_t limit_minutes = 0;  // with margin; Slurm counts minutes
  Bytes memory;               // of one GPU; 0: not predicted
  int64_t priority = 0;       // 1 to 32 million, more for shorter jobs
  bool fits = true;           // in the memory of its GPU
  std::string gpu;
  Nanoseconds step;         // 0: not predicted
  std::string calibration;  // what of a machine's readings counted; empty: nothing
};

enum class JobOrder : uint8_t { shortest, least_gpu_time };

struct LimitOptions {
  double margin = 0.2;  // of the predicted time, on top of it
  double startup = 60;  // seconds before the first iteration and after the last
  std::string gpu;      // of jobs that name none; empty: usual_gpu
  JobOrder order = JobOrder::shortest;
  int32_t gpus_per_node = 8;
  NetworkOptions network;  // between nodes
};

// Whether the numbers make sense; asked by both of these below.
Status check_limit_options(const LimitOptions& options);

// Rows of a file, sorted by job, byte by byte, as job_submit.lua searches them. A row at fault and one whose job is
// there already go to `bad_row`, and the others go on; a file without rows is an Error.
Result<std::vector<JobLimit>> predict_limits(const std::string& path, const LimitOptions& options,
                                             const CostModels& cost_models,
                                             const std::function<void(const Error&)>& bad_row,
                                             const WorkControl& control = {});

// One job: "model=resnet50 batch=64 iterations=10000".
Result<JobLimit> predict_limit(const std::string& description, const LimitOptions& options,
                               const CostModels& cost_models);

// Reads what limits_csv wrote.
Result<std::vector<JobLimit>> read_limits(const std::string& path);

// 1 to 32 million, falling with the time's logarithm: apart by seconds up to months.
int64_t priority_of(double seconds);

}  // namespace forerun
