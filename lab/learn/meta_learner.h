// MetaLearner: first-order MAML (Finn, Abbeel and Levine, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks",
// ICML 2017), which learns weights from which a few steps on a few samples of a task go far.
//
// An episode is one task and two disjoint sets of its groups, drawn anew: for ETS a task is a GPU and a group a trace. The inner
// loop takes some steps of Adam on batches of the first set, the support, as tuning would; the gradient of the loss on the second, the
// query, at the weights so reached, is the episode's. The outer step is taken from the weights as they were, along the mean
// gradient of its episodes. That the weights reached depend on those begun with is left out (first order): cuDNN has no second
// derivatives of recurrent layers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/dataset/predictor.h"
#include "lab/learn/torch.h"

namespace forerun::learn {

// Samples `first` to `first + count - 1` of whatever is trained on.
struct SampleRange {
  int64_t first = 0;
  int64_t count = 0;
};

struct MetaTask {
  std::string name;
  std::vector<SampleRange> groups;
};

class MetaLearner {
 public:
  using Loss = std::function<torch::Tensor(const torch::Tensor& batch)>;

  // `batch`: samples of a step. An Error where there are no two tasks, or one has too few groups to divide.
  static Result<MetaLearner> create(torch::nn::Module& module, Loss loss, std::vector<MetaTask> tasks,
                                    const MetaOptions& options, int64_t batch);

  // Of an epoch: about twenty outer steps, all tasks equally often.
  [[nodiscard]] int64_t episodes() const;

  // Leaves the mean gradient of these episodes in the module's parameters and the parameters as they were; gives the mean loss on
  // the queries. An episode's task follows from its number; what is drawn of it, from torch's generator.
  torch::Tensor gradients(const torch::Tensor& episodes);

 private:
  MetaLearner(torch::nn::Module& module, Loss loss, std::vector<MetaTask> tasks, const MetaOptions& options,
              int64_t batch)
      : module_(&module), loss_(std::move(loss)), tasks_(std::move(tasks)), options_(options), batch_(batch) {}
  struct Episode {
    torch::Tensor support, query;  // numbers of all their samples
  };
  [[nodiscard]] Episode draw(const MetaTask& task) const;

  torch::nn::Module* module_;
  Loss loss_;
  std::vector<MetaTask> tasks_;
  MetaOptions options_;
  int64_t batch_;
};

// Takes `steps` steps of Adam on batches drawn from `samples`.
void adapt(torch::nn::Module& module, const MetaLearner::Loss& loss, const torch::Tensor& samples, int64_t batch,
           int64_t steps, double rate);

}  // namespace forerun::learn
