// Workloads as Driple's network takes them: grouped graphs (op_groups.h) with scaled features, and figures of the whole
// workload. Workloads of one iteration share its graph.
#pragma once

#include <vector>

#include "lab/dataset/driple/op_groups.h"
#include "lab/dataset/driple/workload.h"
#include "lab/learn/driple/driple_net.h"
#include "lab/learn/driple/driple_options.h"

namespace forerun::learn {

// What is fitted to the training workloads.
struct DripleScales {
  OperatorFrequencies frequencies;
  std::array<double, kGroupFeatures> features = {1, 1, 1};  // largest of each
  std::vector<double> globals_center, globals_spread;       // a spread of 0: always the same, and told as 0
};

class DripleGraphs {
 public:
  DripleGraphs(const ResourceData& data, const Selection& workloads, const DripleOptions& options,
               const DripleScales& scales);
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(graph_.size()); }
  [[nodiscard]] double mean_nodes() const;
  [[nodiscard]] std::array<double, kGroupFeatures> largest_features() const;
  [[nodiscard]] DripleBatch batch(const torch::Tensor& chosen, const torch::Device& device) const;

 private:
  void add_graph(const GroupedGraph& grouped, const DripleScales& scales);

  std::vector<size_t> graph_;  // by workload
  std::vector<int64_t> first_node_ = {0}, first_edge_ = {0};
  std::vector<float> nodes_;              // kGroupFeatures each
  std::vector<int64_t> source_, target_;  // nodes counted in their graph
  std::vector<float> weight_;
  std::vector<float> globals_;  // by workload, scaled
  int64_t width_ = 0;           // of globals
};

// Figures of the whole workload, not scaled.
std::vector<float> driple_globals(const ResourceWorkload& workload, const DripleOptions& options);
DripleScales fit_driple_scales(const ResourceData& data, const Selection& training, const DripleOptions& options);

}  // namespace forerun::learn
