// GraphPredictor: predictors that look at the graph of an iteration and answer with one number. DNNPerf and the
// baselines of its paper differ in the network alone; features, batches, training and files are here.
//
// Graphs of a batch lie side by side as one graph without links between them (block-diagonal), so that a layer is a few
// gathers and index_adds over all nodes and edges, however the sizes differ. The number is a natural logarithm, of
// milliseconds or of bytes; the loss is its mean absolute difference, which for small errors is the mean relative
// error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/dataset/graph_features.h"
#include "lab/dataset/metrics.h"
#include "lab/dataset/predictor.h"
#include "lab/learn/torch.h"

namespace forerun::learn {

// What a network sees: the graphs of a batch as one.
struct GraphBatch {
  int64_t graphs = 0;
  torch::Tensor names;     // int64 [nodes]: index in the vocabulary
  torch::Tensor nodes;     // [nodes, features]
  torch::Tensor graph_of;  // int64 [nodes]
  torch::Tensor position;  // int64 [nodes]: in the graph, in program order
  torch::Tensor sizes;     // int64 [graphs]: number of nodes; on the CPU
  torch::Tensor source;    // int64 [edges]
  torch::Tensor target;    // int64 [edges]
  torch::Tensor edges;     // [edges, GraphFeatures::kEdgeWidth]
  torch::Tensor whole;     // [graphs, GraphFeatures::kWholeWidth]
};

// Settings of all graph predictors.
struct GraphOptions {
  int64_t layers = 3;
  int64_t hidden = 64;
  std::string encoder;              // of systems that have several; else empty
  std::string graph = "forward";    // forward, iteration: which ops are nodes
  std::string scaler = "min_max";   // min_max, standard
  std::string tensor_cost = "yes";  // yes, no: sizes and FLOPs among the features
  std::string readout = "sum";      // sum; log_sum: logarithm of the sum of exponentials; mean

  [[nodiscard]] Settings to_settings() const;
};

struct GraphWidths {
  int64_t names = 0;
  int64_t nodes = 0;
};

class GraphNet : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const GraphBatch& batch) = 0;  // [graphs]
};

// A published system, as far as it differs from the others.
struct GraphSystem {
  const char* name = "";
  GraphOptions defaults;
  std::vector<std::string> encoders;  // values of the setting `encoder`; empty: there is no such setting
  std::shared_ptr<GraphNet> (*make)(const GraphOptions& options, const GraphWidths& widths) = nullptr;
  int64_t epochs = 300;
  int64_t batch = 16;
  double learning_rate = 2e-3;
};

// Examples as tensors on a device.
class GraphTensors {
 public:
  GraphTensors(const GraphTables& tables, torch::Device device);
  // `graphs`: their numbers.
  [[nodiscard]] GraphBatch batch(std::span<const int64_t> graphs) const;
  [[nodiscard]] int64_t nodes_of(int64_t graph) const;
  [[nodiscard]] int64_t graphs() const { return static_cast<int64_t>(first_node_.size()) - 1; }

 private:
  std::vector<size_t> first_node_, first_edge_;
  torch::Tensor node_begin_, edge_begin_;  // the same on the device
  torch::Tensor rows_, names_, nodes_, sources_, targets_, edges_, whole_;
  torch::Device device_;
};

class GraphPredictor : public Predictor {
 public:
  // `quantity`: iteration_ms or peak_bytes.
  GraphPredictor(GraphSystem system, Target quantity);

  [[nodiscard]] Settings settings() const override;
  Result<TrainingLog> train(const DataSet& data, const TrainOptions& options) override;
  std::vector<Prediction> predict(const DataSet& data, const Selection& examples) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  Status choose(const Settings& settings);
  void make_net();
  std::vector<double> logarithms(const GraphTensors& graphs);
  [[nodiscard]] Prediction prediction_of(double logarithm) const;

  GraphSystem system_;
  Target quantity_;
  GraphOptions options_;
  GraphFeatures features_;
  std::shared_ptr<GraphNet> net_;
  double center_ = 0;  // mean logarithm of the training examples
  torch::Device device_ = torch::kCPU;
};

// What the networks share.

// Features of nodes to `hidden` values each: a linear layer over name (one-hot), features and those of the whole run.
class NodeEncoderImpl : public torch::nn::Module {
 public:
  NodeEncoderImpl(const GraphWidths& widths, int64_t hidden);
  torch::Tensor forward(const GraphBatch& batch);  // [nodes, hidden]

 private:
  torch::nn::Embedding name_ = nullptr;
  torch::nn::Linear node_ = nullptr, whole_ = nullptr;
};
TORCH_MODULE(NodeEncoder);

// Values of nodes (or of groups of them) to a number a graph: their sum or mean, as ln(1 + x), then an MLP. With log_sum the
// values become logarithms of what is added up, times or bytes that span orders of magnitude.
class ReadoutImpl : public torch::nn::Module {
 public:
  ReadoutImpl(int64_t hidden, const std::string& kind);
  // values: [places, hidden], 0 or more; graph_of: int64 [places]. Gives [graphs].
  torch::Tensor forward(const torch::Tensor& values, const torch::Tensor& graph_of, int64_t graphs);

 private:
  bool mean_, log_sum_;
  torch::nn::Linear logs_ = nullptr, first_ = nullptr, second_ = nullptr, last_ = nullptr;
};
TORCH_MODULE(Readout);

}  // namespace forerun::learn
