// KindNetworks: a small MLP for each kind of work, over columns that it scales by their mean and spread in training. A column
// beyond what training had counts as the outermost there, since what a network makes of it else is anyone's guess. Habitat
// and NeuSight differ in what the columns are and in what is made of the outputs.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "lab/dataset/other_gpus/gpu_work.h"
#include "lab/dataset/predictor.h"
#include "lab/learn/torch.h"

namespace forerun::learn {

class KindNetworkImpl : public torch::nn::Module {
 public:
  KindNetworkImpl(int64_t columns, int64_t layers, int64_t hidden, int64_t outputs);
  torch::Tensor forward(const torch::Tensor& columns);  // [rows, columns] -> [rows, outputs]
  void fit_scales(const torch::Tensor& columns);

 private:
  torch::Tensor mean_, spread_, least_, most_;
  torch::nn::Sequential layers_;
};
TORCH_MODULE(KindNetwork);

struct NetworkSize {
  int64_t columns = 0;
  int64_t layers = 3;
  int64_t hidden = 32;
  int64_t outputs = 1;
};

class KindNetworksImpl : public torch::nn::Module {
 public:
  KindNetworksImpl(const std::vector<WorkKind>& kinds, const NetworkSize& size);
  [[nodiscard]] bool has(WorkKind kind) const { return nets_.contains(kind); }
  KindNetwork& of(WorkKind kind) { return nets_.at(kind); }

 private:
  std::map<WorkKind, KindNetwork> nets_;
};
TORCH_MODULE(KindNetworks);

// What one network learns from, a row each.
struct KindSamples {
  std::vector<float> columns;  // row after row
  std::vector<float> us;
  std::vector<float> bound;  // for the predictor's own use: what the answer is made of beside the outputs
  std::vector<float> waves;
  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(us.size()); }
};

// Rows of vectors as a tensor, copied.
torch::Tensor as_tensor(const std::vector<float>& values, int64_t rows);

// Microseconds of some rows, from a network's outputs.
struct KindBatch {
  torch::Tensor bound, waves;
};
using TimesOf = torch::Tensor (*)(const torch::Tensor& outputs, const KindBatch& batch);

// Trains the network of each kind that has samples on the mean relative error of its times.
Result<TrainingLog> train_networks(KindNetworks& nets, const std::map<WorkKind, KindSamples>& samples, TimesOf times_of,
                                   const TrainOptions& options);

// The times of some rows by the network of their kind.
std::vector<double> network_times(KindNetworks& nets, WorkKind kind, const KindSamples& samples, TimesOf times_of);

}  // namespace forerun::learn
