// The ops of a model that NeuSight's authors traced, as work on a GPU: what predictors of other GPUs are asked about.
#pragma once

#include <vector>

#include "lab/dataset/other_gpus/other_gpu_predictor.h"
#include "lab/papers/neusight/traced_run.h"

namespace forerun {

// Work of one traced op and what it took on the traced GPU; empty where it launches nothing that counts (views, numbers).
std::vector<learn::OriginWork> forward_work(const TracedOp& op, bool training);
std::vector<learn::OriginWork> backward_work(const TracedOp& op);

// All work of a run: each piece with how often it runs.
struct RunWork {
  std::vector<learn::OriginWork> pieces;
  std::vector<double> times;  // by piece: 1, or the number of layers
};
RunWork work_of_run(const TracedRun& run);

}  // namespace forerun
