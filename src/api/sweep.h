// "Which of these settings is best?": many configurations predicted at once, on all cores.
//
// An axis is a name and its values: "batch=8..256*2" has 8, 16, ... 256, "batch=1..4" has 1, 2, 3, 4, "image=224,384"
// what it says. A sweep goes over the product of its axes, the last one changing fastest. Results are given in that
// order, whatever core they come from, so the same sweep prints the same bytes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/prices.h"
#include "base/work_control.h"
#include "predict/predict.h"

namespace forerun {

struct SweepAxis {
  std::string name;
  std::vector<std::string> values;
};

// NAME=VALUES; at most a million values.
Result<SweepAxis> parse_axis(const std::string& text);

// One configuration of a sweep; `values` are those of the axes, in their order.
struct SweepCase {
  std::vector<std::string> values;
  ModelRequest request;
  Device device;
  JobLength job;                // of the whole run; none: not asked
  std::optional<double> price;  // of an hour of the device
};

// One configuration: the values of the sweep's axes, and what was predicted or why nothing could be.
struct SweepRow {
  std::vector<std::string> values;
  Result<Prediction> prediction;
};

// What a sweep goes over. A value of an axis, or a fixed word, is parsed by its name: "model", "gpu", "batch", "precision",
// "optimizer" and "channels_last" say how the model is trained, and on what; any other name is a parameter of the model's
// family.
struct SweepRequest {
  ModelRequest base;                                       // what stays the same; its model may be left to an axis
  std::string gpu;                                         // empty: kDefaultGpu
  std::vector<std::pair<std::string, std::string>> fixed;  // words that stay the same too
  std::vector<SweepAxis> axes;
  JobLength job;  // of every configuration's whole run
  Prices prices;
};

// The configurations of a sweep, each parsed; the Error of the first that means nothing.
Result<std::vector<SweepCase>> sweep_cases(const SweepRequest& request, const CostModels& cost_models);

// Every choice of one value from each axis, at most ten million.
Result<std::vector<std::vector<std::string>>> product_of(const std::vector<SweepAxis>& axes);

// Predicts every case and hands it to `each`, in order and from one thread at a time. A model that cannot be built with
// some values is that case's Error; the others go on. `threads` 0: as many as the machine has. The only Error is that of
// `control`.
using SweepHandler = std::function<void(const SweepCase&, const Result<Prediction>&)>;
Status sweep(const std::vector<SweepCase>& cases, const CostModels& cost_models, unsigned threads,
             const SweepHandler& each, const WorkControl& control = {});

}  // namespace forerun
