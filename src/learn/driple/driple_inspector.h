// Driple (Yang et al., 2022): the twelve numbers of a workload from the graph of its ops, by a graph neural network.
//
// Groups of ops (op_groups.h), network (driple_net.h), Adam 0.003 with weight decay 1e-6, batches of 32, early stopping
// on families set aside. A network is trained for one setting; transfer learning to another starts from its weights and
// tunes the second half of the repeated layers and the MLP, with targets scaled anew.
// What differs from the paper, each a setting: `target` log (the squared error of standardised logarithms; the paper's
// is max, numbers divided by their maximum, in which short bursts count for nothing); `globals` yes (batch, optimizer,
// mode, parameters, FLOPs of the workload beside the graph, since here one setting holds workloads of several);
// `grouping` proportional with M of the graph and not of the batch; K is half the mean number of groups over the
// training graphs, 0 meaning that.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "learn/driple/driple_net.h"
#include "learn/driple/op_groups.h"
#include "learn/driple/resource_predictor.h"

namespace forerun::learn {

struct DripleOptions {
  std::string layer = "gcn";              // gcn, gin, gat, mpnn
  std::string readout = "set2set";        // set2set, sum, mean, max
  std::string grouping = "proportional";  // none, uniform, proportional
  int64_t groups = 100;                   // M of uniform grouping
  int64_t depth = 0;                      // K; 0: half the groups
  std::string target = "log";             // log, max
  std::string globals = "yes";            // yes, no
};

class DripleInspector : public ResourcePredictor {
 public:
  [[nodiscard]] Settings settings() const override;
  Result<TrainingLog> train(const ResourceData& data, const Selection& training, const Selection& validation,
                            const TrainOptions& options) override;
  Result<TrainingLog> transfer(const ResourceData& data, const Selection& training, const Selection& validation,
                               const TrainOptions& options) override;
  std::vector<ResourceMetrics> predict(const ResourceData& data, const Selection& workloads) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  struct Graphs;
  Status choose(const Settings& settings);
  void fit_scales(const ResourceData& data, const Selection& training);
  void fit_targets(const ResourceData& data, const Selection& training);
  [[nodiscard]] Graphs graphs_of(const ResourceData& data, const Selection& workloads) const;
  [[nodiscard]] DripleBatch batch_of(const Graphs& graphs, const torch::Tensor& chosen) const;
  void make_net(int64_t globals);
  std::vector<ResourceMetrics> answers(const Graphs& graphs);
  Result<TrainingLog> fit(const ResourceData& data, const Selection& training, const Selection& validation,
                          const TrainOptions& options);

  DripleOptions options_;
  OperatorFrequencies frequencies_;
  std::array<double, kGroupFeatures> feature_scale_ = {1, 1, 1};
  ResourceMetrics center_{}, spread_{};  // of targets: logarithms' mean and deviation, or 0 and the maximum
  int64_t depth_ = 0, globals_ = 0;
  bool partitioned_ = false;
  std::shared_ptr<DripleNet> net_;
  torch::Device device_ = torch::kCPU;
};

}  // namespace forerun::learn
