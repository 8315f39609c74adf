// Driple (Yang et al., 2022): the twelve numbers of a workload from the graph of its ops, by a graph neural network.
//
// Groups of ops (op_groups.h), network (driple_net.h), Adam 0.003 with weight decay 1e-6, batches of 32, early stopping
// on families set aside. A network is trained for one setting; transfer learning to another starts from its weights and
// tunes the second half of the repeated layers and the MLP, with targets scaled anew. What differs from the paper is a
// setting each (driple_options.h), and: `grouping` proportional has M of the graph and not of the batch; K is half the
// mean number of groups over the training graphs; gradients are clipped and the learning rate falls along a cosine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/dataset/driple/resource_predictor.h"
#include "lab/learn/driple/driple_graphs.h"
#include "lab/learn/driple/driple_net.h"
#include "lab/learn/driple/driple_options.h"

namespace forerun::learn {

class DripleInspector : public ResourcePredictor {
 public:
  [[nodiscard]] Settings settings() const override { return settings_of(options_); }
  Result<TrainingLog> train(const ResourceData& data, const Selection& training, const Selection& validation,
                            const TrainOptions& options) override;
  // Of the settings, `tune`, `late`, `rescale`, `dropout` and `loss` may be named anew; the others stay.
  Result<TrainingLog> transfer(const ResourceData& data, const Selection& training, const Selection& validation,
                               const TrainOptions& options) override;
  std::vector<ResourceMetrics> predict(const ResourceData& data, const Selection& workloads) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  [[nodiscard]] ResourceMetrics targets_of(const ResourceWorkload& workload) const;
  [[nodiscard]] ResourceMetrics metrics_of(const ResourceWorkload& workload, const float* outputs) const;
  void fit_targets(const ResourceData& data, const Selection& training);
  [[nodiscard]] std::shared_ptr<DripleNet> make_net() const;
  Status use_device(const std::string& name);
  std::vector<ResourceMetrics> answers(const std::vector<std::shared_ptr<DripleNet>>& nets, const ResourceData& data,
                                       const Selection& workloads, const DripleGraphs& graphs) const;
  Result<TrainingLog> fit(DripleNet& net, const ResourceData& data, const ResourceFold& fold,
                          const TrainOptions& options) const;
  Result<TrainingLog> fit_all(const ResourceData& data, const Selection& training, const Selection& validation,
                              const TrainOptions& options);

  DripleOptions options_;
  DripleScales scales_;
  ResourceMetrics center_{}, spread_{};  // of targets: logarithms' mean and deviation, or 0 and the maximum
  int64_t depth_ = 0;
  bool partitioned_ = false;
  std::vector<std::shared_ptr<DripleNet>> nets_;
  torch::Device device_ = torch::kCPU;
};

}  // namespace forerun::learn
