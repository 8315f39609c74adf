// "What does the iteration consist of?": every op of a predicted iteration with its work and its time on the GPU.
#pragma once

#include <string>
#include <vector>

#include "api/predict.h"

namespace forerun {

struct PredictedOp {
  std::string name;    // "aten.convolution.default"
  std::string phase;   // "forward"
  std::string module;  // "layer1.0.conv2"; of a backward op that of its forward op
  Nanoseconds gpu;
  int64_t kernels = 0;
  std::string bound;      // "compute", "memory", "latency"; "none" where there is no kernel
  bool measured = false;  // from measured evidence for such an op
  double flops = 0;
  Bytes bytes;  // read and written
};

// In program order. Of `request` the model and the GPU count; `build` makes the iteration, as of predict_built.
Result<std::vector<PredictedOp>> op_table(const PredictRequest& request, const RunSource& build,
                                          const CostModels& cost_models, const WorkControl& control = {});

}  // namespace forerun
