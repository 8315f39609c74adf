// NeuSight's op latencies as Habitat and NeuSight learn from them: the ops that others timed on P4, P100, V100, T4 and A100.
#pragma once

#include <string>

#include "base/work_control.h"
#include "device/catalogue.h"
#include "lab/dataset/other_gpus/other_gpu_predictor.h"
#include "lab/papers/neusight/op_latency.h"

namespace forerun {

// `folder`: that the archive of op latencies was unpacked in; every CSV file of a version of PyTorch below it is read.
Result<learn::TimedWorkTable> load_other_gpu_tables(const std::string& folder, const DeviceCatalogue& devices,
                                                    const WorkControl& control = {});

}  // namespace forerun
