// ResourcePredictor: what predicts the twelve numbers of a workload (workload.h) from its graph or its columns. Needs no
// LibTorch; Driple's network does, and in a build without it make_driple is an Error that says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/dataset/driple/workload.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

class ResourcePredictor {
 public:
  ResourcePredictor() = default;
  virtual ~ResourcePredictor() = default;
  ResourcePredictor(const ResourcePredictor&) = delete;
  ResourcePredictor& operator=(const ResourcePredictor&) = delete;

  [[nodiscard]] virtual Settings settings() const = 0;
  // Learns from the workloads `training`; when to stop is told by `validation`, where it is not empty.
  virtual Result<TrainingLog> train(const ResourceData& data, const Selection& training, const Selection& validation,
                                    const TrainOptions& options) = 0;
  // Goes on from what it learned before, on another setting: transfer learning.
  virtual Result<TrainingLog> transfer(const ResourceData& data, const Selection& training, const Selection& validation,
                                       const TrainOptions& options) = 0;
  virtual std::vector<ResourceMetrics> predict(const ResourceData& data, const Selection& workloads) = 0;
  [[nodiscard]] virtual Status save(const std::string& folder) const = 0;
  virtual Status load(const std::string& folder) = 0;
};

// Driple (driple_inspector.h).
Result<std::unique_ptr<ResourcePredictor>> make_driple();

// The workloads `from`, less whole families that make up about a fifth of them and go to `validation`.
struct ResourceFold {
  Selection training;
  Selection validation;
};
ResourceFold resource_fold(const ResourceData& data, const Selection& from, uint64_t seed, double share = 0.2);

// Mean of |predicted - measured| / measured of each number over the workloads that tell it; not a number where none does.
ResourceMetrics resource_errors(const ResourceData& data, const Selection& workloads,
                                const std::vector<ResourceMetrics>& predicted);
// Over the numbers that were judged.
double mean_of(const ResourceMetrics& errors);

}  // namespace forerun::learn
