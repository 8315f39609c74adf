// Trains Habitat or NeuSight on NeuSight's op latencies and keeps the weights: `forerun train habitat`, `forerun train neusight`.
#pragma once

#include <string>
#include <vector>

#include "base/work_control.h"
#include "lab/dataset/metrics.h"
#include "lab/dataset/other_gpus/other_gpu_predictor.h"

namespace forerun {

struct OtherGpuTraining {
  std::string predictor;             // "habitat", "neusight"
  std::string ops;                   // folder that the op latencies were unpacked in; empty: the data set neusight
  std::vector<std::string> without;  // GPUs to leave out, by any of their names
  std::string out;                   // folder for the weights; empty: not kept
  learn::TrainOptions options;
};

// How far it is from what was measured on the GPUs left out, in ops of 0.2 ms and more; of Habitat from the other GPUs.
struct OtherGpuTrainingOutcome {
  std::string predictor, source, out;
  int64_t ops = 0;
  double seconds = 0;
  learn::ErrorSummary left_out;  // count 0: no GPU was left out
};

Result<OtherGpuTrainingOutcome> train_other_gpus(const OtherGpuTraining& request, const WorkControl& control = {});

std::string to_text(const OtherGpuTrainingOutcome& outcome);
std::string to_json(const OtherGpuTrainingOutcome& outcome);

}  // namespace forerun
