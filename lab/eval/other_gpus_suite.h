// The suite other-gpus: Forerun, Habitat and NeuSight on GPUs that they know nothing of, on the same ops and the same models.
//
// Ops and models are those that NeuSight's authors measured. Every GPU is left out in turn: Habitat and NeuSight are trained, and
// Forerun's carry-over is fitted, on the others. GPUs that have models and no tables of ops (the A100 of 80 GB, and whatever
// labels are given besides) are judged by what was trained on all tables.
#pragma once

#include <string>

#include "base/work_control.h"
#include "lab/accuracy/other_gpus_accuracy.h"
#include "lab/dataset/predictor.h"

namespace forerun {

struct OtherGpusRequest {
  std::string ops;       // folder that NeuSight's archive of op latencies was unpacked in; empty: beside `neusight`
  std::string neusight;  // folder of its labels; empty: the data set neusight
  bool forerun = true;   // judge Forerun too, which takes as long as the suite gpus
  learn::TrainOptions options;
};

Result<OtherGpusAccuracy> evaluate_other_gpus(const OtherGpusRequest& request, const WorkControl& control = {});

}  // namespace forerun
