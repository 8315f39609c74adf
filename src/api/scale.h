// "How fast does it train on many GPUs?": `forerun scale`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/prices.h"
#include "base/work_control.h"
#include "graph/training_run.h"
#include "predict/cost_models.h"
#include "predict/job_time.h"
#include "scale/step.h"

namespace forerun {

struct ScaleAnswer {
  std::string model;
  int64_t parameters = 0;
  std::string gpu;
  int64_t node = 8;
  std::string within;
  std::string between;
  std::string precision;
  bool searched = false;  // `steps` are plans for one number of GPUs, best first; else one for each number
  std::vector<scale::Step> steps;
  int64_t considered = 0;  // of a search
  int64_t feasible = 0;
  int64_t too_large = 0;
  double seconds = 0;  // the search took; neither form prints it, so that they are the same every time
  Bytes device_memory;
  std::vector<std::string> assumptions;
  JobLength job;                // of the question
  double power_w = 0;           // of one GPU; 0: not known, or there are several kinds
  std::optional<double> price;  // of an hour of one GPU
};

// What a job takes with one of the steps; and what it draws and costs.
JobTime job_time(const JobLength& length, const scale::Step& step);
JobTime job_time(const ScaleAnswer& answer, const scale::Step& step);

struct ScaleQuestion {
  std::string model;                                          // as `forerun predict` takes it
  std::vector<std::pair<std::string, std::string>> settings;  // parameters of its family
  std::string gpu;                                            // empty: usual_gpu
  std::vector<int64_t> gpus = {8};
  int64_t node = 8;
  std::string network = "4xhdr";  // of a node; or a rate
  std::string within;             // link between GPUs of a node; empty: the GPU's own
  std::string strategy = "dp";
  bool search = false;
  int64_t global_batch = 0;  // samples a step; 0: one micro-batch a replica, four a stage of a pipeline
  int64_t micro_batch = 0;   // 0: the plan's; else 1 of a transformer, that of a capture, 32 of another model
  TrainingSetup setup;
  bool default_precision = true;  // bfloat16 with autocast for transformers, float32 for others
  bool default_optimizer = true;  // AdamW for tokens, SGD with momentum for images
  bool plain_attention = false;   // scores are written to memory, as without fused attention
  JobLength job;                  // nothing: its hours are not asked for
  Prices prices;
  std::string efficiency;  // file of constants; empty: data/scale/a100_megatron.json
};

Result<ScaleAnswer> scale_out(const ScaleQuestion& question, const CostModels& cost_models,
                              const WorkControl& control = {});

}  // namespace forerun
