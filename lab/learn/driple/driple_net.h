// Driple's network: graph layers over groups of ops, a readout, and an MLP to twelve numbers.
//
// First layer 3 -> 64, then one repeated layer 64 -> 64, applied until the depth is reached; leaky ReLU 0.01 and one
// shared GRU cell after each. The repeated layer is kept twice, for the early and the late ones of its applications:
// one set of weights while a network is trained, two once it is tuned to another setting. GCN is normalised
// symmetrically with self-loops. Variants of the paper: GIN, GAT (4 heads), MPNN. Readouts: Set2Set, sum, mean, max.
// What differs: Set2Set takes 12 steps (the paper: as many as nodes), and globals may be appended to its answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/learn/torch.h"

namespace forerun::learn {

struct DripleBatch {
  int64_t graphs = 0;
  torch::Tensor nodes;     // [nodes, 3]
  torch::Tensor graph_of;  // int64 [nodes]
  torch::Tensor source;    // int64 [edges], both directions and each node to itself
  torch::Tensor target;    // int64 [edges]
  torch::Tensor weight;    // [edges, 1]: 1 / sqrt(degree of source * degree of target), degrees with the self-loop
  torch::Tensor globals;   // [graphs, globals]
};

struct DripleShape {
  std::string layer = "gcn";        // gcn, gin, gat, mpnn
  std::string readout = "set2set";  // set2set, sum, mean, max
  int64_t hidden = 64;
  int64_t depth = 15;  // graph layers in all
  int64_t globals = 0;
  double dropout = 0;  // share of the MLP's inputs
  double late = 0.5;   // share of the layers that have weights of their own once a network is tuned
};

// One graph layer of any kind, without the activation behind it.
class GraphLayerImpl : public torch::nn::Module {
 public:
  GraphLayerImpl(const std::string& kind, int64_t in, int64_t out);
  torch::Tensor forward(const torch::Tensor& nodes, const DripleBatch& batch);

 private:
  torch::Tensor attend(const torch::Tensor& nodes, const DripleBatch& batch);

  std::string kind_;
  int64_t out_;
  torch::nn::Linear first_ = nullptr, second_ = nullptr, to_ = nullptr, from_ = nullptr;
};
TORCH_MODULE(GraphLayer);

// Vinyals et al., 2016: attention over nodes, asked for by an LSTM that reads its own answers.
class Set2SetImpl : public torch::nn::Module {
 public:
  explicit Set2SetImpl(int64_t hidden);
  torch::Tensor forward(const torch::Tensor& nodes, const DripleBatch& batch);  // [graphs, 2 hidden]

 private:
  int64_t hidden_;
  torch::nn::LSTMCell cell_ = nullptr;
};
TORCH_MODULE(Set2Set);

class DripleNet : public torch::nn::Module {
 public:
  explicit DripleNet(const DripleShape& shape);
  torch::Tensor forward(const DripleBatch& batch);  // [graphs, 12]

  // Only these parts (kDripleParts) learn on. Late layers get weights of their own, equal at first, where they are named.
  void tune_parts(const std::vector<std::string>& parts, double late);
  // Everything learns on; layers that are one stay one.
  void tune_all();
  void set_dropout(double share) { shape_.dropout = share; }
  // Weights that were read of a network whose late layers are apart.
  void keep_apart() { apart_ = true; }
  [[nodiscard]] bool is_apart() const { return apart_; }
  // While it is trained as a whole, early and late layers are one.
  void share_layers();

 private:
  torch::Tensor pooled(const torch::Tensor& nodes, const DripleBatch& batch);

  DripleShape shape_;
  bool apart_ = false;
  GraphLayer first_ = nullptr, repeated_ = nullptr, late_ = nullptr;
  torch::nn::GRUCell gru_ = nullptr;
  Set2Set set2set_ = nullptr;
  torch::nn::Linear mlp1_ = nullptr, mlp2_ = nullptr, mlp3_ = nullptr;
};

}  // namespace forerun::learn
