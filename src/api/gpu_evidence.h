// "How well is this GPU known?": what was measured on it, and the error to expect of iterations there, from what
// `forerun eval` printed last: data/evaluations/gpus.json of other GPUs, each left out of all fits, and h200.json of the measured
// one, its test families left out (data/cost/measured.json is what `forerun data summary` counts of it). A GPU that nobody ran models on
// is told the mean of runs on GPUs at its distance.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "predict/cost_models.h"

namespace forerun {

struct GpuEvidence {
  std::map<std::string, int64_t> ops;  // by kind: timed there by others, and judged; or all that were measured here
  int64_t runs = 0;                    // whole models that were run there, and judged
  std::optional<double> error;         // mean, of times; nothing where no run tells
  std::string of;                      // whose it is: "own" runs, or those of GPUs at a distance: "near", "far"
};

class GpuEvidences {
 public:
  // An Error where the kept evaluations cannot be read.
  static Result<GpuEvidences> load(const CostModels& cost_models);

  [[nodiscard]] GpuEvidence of(const Device& device) const;

 private:
  struct Mean {
    double sum = 0;
    int64_t count = 0;
    void add(double value) {
      sum += value;
      ++count;
    }
  };

  std::string measured_;                          // the GPU, by name
  GpuEvidence own_;                               // of it
  std::map<std::string, std::string> distances_;  // in fp32, by GPU of the catalogue
  std::map<std::string, std::map<std::string, int64_t>> ops_;
  std::map<std::string, Mean> by_gpu_;
  std::map<std::string, Mean> judged_alone_;  // of other software, for GPUs that have no other runs
  std::map<std::string, Mean> by_distance_;
};

}  // namespace forerun
