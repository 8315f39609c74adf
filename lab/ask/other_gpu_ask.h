// Asks Habitat or NeuSight about a training run: the GPU time of every op on the run's GPU, and their sum.
//
// NeuSight needs the run alone. Habitat carries times over from an origin: those that somebody measured, else those that
// Forerun predicts for the GPU that it was measured on.
#pragma once

#include <string>
#include <vector>

#include "graph/training_run.h"
#include "lab/dataset/other_gpus/other_gpu_predictor.h"
#include "predict/cost_models.h"

namespace forerun {

// What the ops of a run take on an origin.
struct OriginTimes {
  std::string gpu;           // as the catalogue finds it
  std::vector<float> op_us;  // by op of the run's graph
};

struct OtherGpuAnswer {
  learn::Prediction prediction;
  std::string based_on;  // a sentence without its full stop
  std::vector<std::string> notes;
};

// `origin` may be null. An Error where the GPU, or the origin's, is none that the predictor can tell of.
Result<OtherGpuAnswer> ask_other_gpu(learn::OtherGpuPredictor& predictor, const TrainingRun& run,
                                     const CostModels& cost_models, const OriginTimes* origin);

}  // namespace forerun
