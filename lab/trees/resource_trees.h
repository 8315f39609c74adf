// Trees for the twelve numbers of a workload: Forerun's own beside Driple's network.
//
// A forest for each number, boosted on columns of the workload (lab/training_data/driple_data.cpp) and on logarithms of a first guess,
// which is a simulation's or a formula's. They learn the logarithm of measured over guessed.
#pragma once

#include <string>
#include <vector>

#include "cost/trees/forest.h"
#include "lab/dataset/driple/resource_predictor.h"

namespace forerun::learn {

enum class TreeBasis : uint8_t { simulation, formulas };

class ResourceTrees {
 public:
  explicit ResourceTrees(TreeBasis basis) : basis_(basis) {}

  // An Error where this build cannot grow forests (lab/trees/boosting.h).
  Status train(const ResourceData& data, const Selection& training, uint64_t seed);
  [[nodiscard]] std::vector<ResourceMetrics> predict(const ResourceData& data, const Selection& workloads) const;

 private:
  [[nodiscard]] const ResourceMetrics& guess_of(const ResourceWorkload& workload) const;
  [[nodiscard]] std::vector<float> row_of(const ResourceWorkload& workload) const;

  TreeBasis basis_;
  std::vector<Forest> forests_;  // by metric
};

}  // namespace forerun::learn
