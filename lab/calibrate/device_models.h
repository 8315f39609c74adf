// Whole models that others ran on other GPUs, predicted.
//
// From NeuSight: forward, or forward and backward, of transformers in fp32 (label/GPU/MODEL-WHAT-LENGTH-BATCH.json and
// DLmodel_configs/MODEL.json), with eager attention; a forward pass alone is of BERT as a classifier and without dropout. From Lambda: throughputs of training
// ResNet-50 and BERT on one GPU (pytorch-train-{bs,throughput}-{fp32,fp16}.csv; fp32 there is TF32 where the GPU has it), with the
// attention of their time, eager. Its software is not the one that is predicted, and the same on all GPUs: how far off the same
// question is on the GPU that was measured (pytorch-train-throughput-v2-*.csv has an H200) is each run's yardstick.
// What the zoo or the catalogue does not know is passed over, and named among the problems.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/accuracy/device_accuracy.h"
#include "predict/cost_models.h"
#include "predict/predict.h"

namespace forerun {

struct OtherGpuRuns {
  std::vector<OtherGpuRun> runs;
  std::vector<std::string> problems;
};

// Asked once for each GPU: the cost models to predict its runs with, valid until it is asked again.
using KnowledgeFor = std::function<const CostModels&(const Device&)>;

// The larger of computation at the peak rate of each op's unit and of its bytes at the full bandwidth, summed over the ops that
// `counts` takes.
using CountsOp = std::function<bool(const Graph& graph, const Op& op)>;
double roofline_ms(const TrainingRun& run, const Device& device, const CountsOp& counts);

// A whole iteration on the device: as it is predicted, and its roofline.
struct IterationTimes {
  double predicted_ms = 0;
  double roofline_ms = 0;
};
Result<IterationTimes> iteration_times(const ModelRequest& request, const Device& device,
                                       const CostModels& cost_models);

// Whether an op is of the loss, which those who time passes leave out.
bool is_loss(const Graph& graph, const Op& op);

OtherGpuRuns runs_of_neusight(const std::string& folder, const DeviceCatalogue& devices,
                              const KnowledgeFor& cost_models);
OtherGpuRuns runs_of_lambda(const std::string& folder, const DeviceCatalogue& devices, const KnowledgeFor& cost_models);

}  // namespace forerun
