// "How fast does it train on many GPUs?": `forerun scale`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/prices.h"
#include "base/work_control.h"
#include "graph/training_run.h"
#include "predict/cost_models.h"
#include "predict/job_time.h"
#include "scale/step.h"
#include "scale/step_picture.h"
#include "scale/whole_run.h"

namespace forerun {

struct ScaleAnswer {
  std::string model;
  int64_t parameters = 0;
  std::string gpu;
  int64_t node = 8;
  std::string within;
  std::string between;
  std::string stack;  // "pytorch" or "megatron"
  std::string precision;
  CompileMode compile = CompileMode::none;
  bool searched = false;  // `steps` are plans for one number of GPUs, best first; else one for each number
  std::vector<scale::Step> steps;
  std::optional<scale::Step> explained;       // the plan of a search's question that is held against the first
  std::optional<scale::StepPicture> picture;  // of the step that is told most of: shown_step
  int64_t considered = 0;                     // of a search
  int64_t feasible = 0;
  int64_t too_large = 0;
  int64_t impossible = 0;              // the model cannot be cut so
  std::optional<scale::Step> nearest;  // to fitting, where no plan fits
  double seconds = 0;                  // the search took; neither form prints it, so that they are the same every time
  Bytes device_memory;
  std::vector<std::string> assumptions;
  JobLength job;                // of the question
  scale::RunRisks risks;        // the same
  Bytes state;                  // of a checkpoint: weights, and what the optimizer keeps of them
  double power_w = 0;           // of one GPU; 0: not known, or there are several kinds
  std::optional<double> price;  // of an hour of one GPU
};

// The step that most is told of: the best of a search, else that of the most GPUs; null: there is none.
const scale::Step* shown_step(const ScaleAnswer& answer);

// What a job takes with one of the steps; and what it draws and costs.
JobTime job_time(const JobLength& length, const scale::Step& step);
JobTime job_time(const ScaleAnswer& answer, const scale::Step& step);

// The same job with failures, checkpoints and slow GPUs.
scale::WholeRun whole_run(const ScaleAnswer& answer, const scale::Step& step);

struct ScaleQuestion {
  std::string model;                                          // as `forerun predict` takes it
  std::vector<std::pair<std::string, std::string>> settings;  // parameters of its family
  std::string gpu;                                            // empty: usual_gpu
  std::vector<int64_t> gpus = {8};
  int64_t node = 8;
  std::optional<std::string> network;  // of a node; or a rate; nothing: usual_network (cost/collective/link_name.h)
  std::string within;                  // link between GPUs of a node; empty: the GPU's own
  std::string strategy;                // empty: "dp"
  bool search = false;
  size_t shown = 10;            // plans of a search of which all is said that is known
  std::string explain;          // of a search: a plan that is held against the best
  bool picture = false;         // the shown step as it passes
  double oversubscription = 1;  // of the network beyond the nodes' own connections
  int64_t global_batch = 0;     // samples a step; 0: one micro-batch a replica, four a stage of a pipeline
  // 0: the plan's; else that of the model, as `forerun predict` takes it, or the largest below that divides the global batch.
  int64_t micro_batch = 0;
  TrainingSetup setup;
  // Whether Megatron-LM trains it, with fused kernels and half-precision weights. Nothing: it does where a plan names
  // tensor groups or stages, or a search may find them best, and it has such a model in that precision; else PyTorch does.
  std::optional<bool> megatron;
  bool default_precision = true;  // none was named
  bool default_optimizer = true;  // AdamW for tokens, SGD with momentum for images
  bool plain_attention = false;   // Megatron's scores are written to memory, as without fused attention
  JobLength job;                  // nothing: its hours are not asked for
  scale::RunRisks risks;          // of the job
  Prices prices;
  std::string efficiency;  // file of constants; empty: data/scale/a100_megatron.json
};

// The plan that is asked for, as it is written.
inline std::string_view plan_text(const ScaleQuestion& question) {
  return question.strategy.empty() ? std::string_view("dp") : question.strategy;
}

Result<ScaleAnswer> scale_out(const ScaleQuestion& question, const CostModels& cost_models,
                              const WorkControl& control = {});

}  // namespace forerun
