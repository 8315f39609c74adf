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
#include "base/shard.h"
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

// What a sweep goes over. A value of an axis, or a fixed word, is parsed by its name: "model", "gpu", "batch", "precision",
// "optimizer", "compile" and "channels_last" say how the model is trained, and on what; any other name is a parameter of the model's
// family.
struct SweepRequest {
  ModelRequest base;                                       // what stays the same; its model may be left to an axis
  std::string gpu;                                         // empty: usual_gpu
  std::vector<std::pair<std::string, std::string>> fixed;  // words that stay the same too
  std::vector<SweepAxis> axes;
  JobLength job;  // of every configuration's whole run
  Prices prices;
};

// The configurations of a sweep, made when they are asked for: ten million of them take no memory.
class SweepCases {
 public:
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] const std::vector<SweepAxis>& axes() const { return request_.axes; }
  [[nodiscard]] std::vector<std::string> names() const;                // of the axes
  [[nodiscard]] std::vector<std::string> values(size_t number) const;  // of the axes, in their order
  [[nodiscard]] SweepCase operator[](size_t number) const;

 private:
  friend Result<SweepCases> sweep_cases(const SweepRequest& request, const CostModels& cost_models);
  SweepCases(SweepRequest request, const CostModels& cost_models, size_t size)
      : request_(std::move(request)), cost_models_(&cost_models), size_(size) {}
  SweepRequest request_;
  const CostModels* cost_models_;
  size_t size_;
};

// An Error for a value that means nothing, whichever configurations have it. The cost models must outlive what is given.
Result<SweepCases> sweep_cases(const SweepRequest& request, const CostModels& cost_models);

// How many choices of one value from each axis there are, at most ten million.
Result<size_t> product_size(const std::vector<SweepAxis>& axes);
// The n-th of them: the last axis changes fastest.
std::vector<std::string> product_values(const std::vector<SweepAxis>& axes, size_t number);

// What is predicted of one configuration, or why nothing can be.
Result<Prediction> predict_case(const SweepCase& one, const CostModels& cost_models);

// Predicts every case and hands it to `each`, in order and from one thread at a time. A model that cannot be built with
// some values is that case's Error; the others go on. `threads` 0: as many as the machine has. Of a shard only its own. The
// only Error is that of `control`.
using SweepHandler = std::function<void(const SweepCase&, const Result<Prediction>&)>;
Status sweep(const SweepCases& cases, const CostModels& cost_models, unsigned threads, const SweepHandler& each,
             const WorkControl& control = {}, const Shard& shard = {});

}  // namespace forerun
