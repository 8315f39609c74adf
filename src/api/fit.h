// "How large a batch fits?": the largest value of one number of a model's configuration that a GPU has memory for.
//
// Every value that is tried is a training iteration of its own, derived and replayed through the simulated allocator. The
// first guess comes from a straight line through two small values; from there on by secants, in doubling steps, and by
// halves. What cuDNN takes jumps with shapes, so the answer is the value that fits while the next does not, and the ones
// around it are tried too.
//
// A value fits where the upper end of the range that held 8 of 10 measured runs does; MemoryQuestion::margin puts another
// share in its place.
#pragma once

#include <string>

#include "api/fit_answer.h"
#include "api/prices.h"
#include "base/work_control.h"
#include "predict/predict.h"

namespace forerun {

struct FitRequest {
  ModelRequest model;          // its batch is not looked at where that is the axis
  std::string axis = "batch";  // or a whole-number setting of the model: image, length (also "seq")
  MemoryQuestion memory;
  double reserve_share = 0;  // of the device's memory, kept free ...
  Bytes reserve;             // ... and so much more
  bool changes = true;       // also what would let a larger one in
  JobLength job;             // of the whole run, which the answer then tells at the largest value
  Prices prices;
};

// What users write of these: "5%", "2GiB" or "512MiB" to keep free; "range", "none" or "5%" beyond the prediction.
Status parse_reserve(const std::string& text, FitRequest& request);
Status parse_margin(const std::string& text, FitRequest& request);

// Progress counts the training iterations that were derived.
Result<FitAnswer> fit(const FitRequest& request, const Device& device, const CostModels& cost_models,
                      const WorkControl& control = {});

}  // namespace forerun
