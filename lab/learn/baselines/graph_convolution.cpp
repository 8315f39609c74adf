// Two networks of graph convolutions with symmetrically normalised adjacency and self-loops.
//
// BRP-NAS (Dudziak et al., NeurIPS 2020, as DNNPerf's paper compares with it): 4 layers on nothing but the operators'
// kinds, a global node linked to every node, whose last value gives the answer. It knows no sizes: that is the point of
// the comparison. The settings scaler, tensor_cost and readout change nothing. 256 values a node keep the weights
// small; theirs are 600 (hidden=600).
//
// Grouping GCN (the baseline of ETS's paper, after Driple's idea): the trace cut into 25 groups of equal length,
// features of a group the sum of its nodes' and their number, 8 layers, summed. Groups are linked where their nodes
// are.
#include "lab/learn/baselines/graph_baselines.h"

namespace forerun::learn {
namespace {

constexpr int64_t kGroups = 25;

torch::Tensor counted(const torch::Tensor& places, int64_t size, const torch::TensorOptions& options) {
  return torch::zeros({size}, options).index_add(0, places, torch::ones({places.size(0)}, options));
}

class BrpNasNet : public GraphNet {
 public:
  BrpNasNet(const GraphOptions& options, const GraphWidths& widths) {
    name_ = register_module("name", torch::nn::Embedding(widths.names, options.hidden));
    global_ = register_parameter("hub", 0.1 * torch::randn({1, options.hidden}));
    for (int64_t i = 1; i < options.layers; ++i) {
      layers_.push_back(
          register_module("layer" + std::to_string(i), torch::nn::Linear(options.hidden, options.hidden)));
    }
    last_ = register_module("last", torch::nn::Linear(options.hidden, 1));
    torch::NoGradGuard guard;
    name_->weight.mul_(0.1);
  }

  torch::Tensor forward(const GraphBatch& batch) override {
    const torch::TensorOptions options = name_->weight.options();
    const int64_t count = batch.names.size(0);
    // A node's links: its edges, itself and the global node; the global node's: every node and itself.
    const torch::Tensor scale = (counted(batch.target, count, options) + 2).rsqrt().unsqueeze(1);
    const torch::Tensor global_scale = (counted(batch.graph_of, batch.graphs, options) + 1).rsqrt().unsqueeze(1);
    torch::Tensor nodes = name_(batch.names);  // the first layer: one-hot times weights
    torch::Tensor global = global_.expand({batch.graphs, -1});
    for (size_t i = 0; i <= layers_.size(); ++i) {
      if (i > 0) {
        nodes = layers_[i - 1](nodes);
        global = layers_[i - 1](global);
      }
      const torch::Tensor scaled = nodes * scale;
      const torch::Tensor scaled_global = global * global_scale;
      const torch::Tensor near = scaled.index_add(0, batch.target, scaled.index_select(0, batch.source)) +
                                 scaled_global.index_select(0, batch.graph_of);
      global = torch::relu(global_scale * scaled_global.index_add(0, batch.graph_of, scaled));
      nodes = torch::relu(scale * near);
    }
    return last_(global).squeeze(1);
  }

 private:
  torch::nn::Embedding name_ = nullptr;
  torch::Tensor global_;
  std::vector<torch::nn::Linear> layers_;
  torch::nn::Linear last_ = nullptr;
};

class GroupingNet : public GraphNet {
 public:
  GroupingNet(const GraphOptions& options, const GraphWidths& widths) {
    nodes_ = register_module("nodes", NodeEncoder(widths, options.hidden));
    size_ = register_module("size", torch::nn::Linear(1, options.hidden));
    for (int64_t i = 0; i < options.layers; ++i) {
      layers_.push_back(
          register_module("layer" + std::to_string(i), torch::nn::Linear(options.hidden, options.hidden)));
    }
    readout_ = register_module("readout", Readout(options.hidden, options.readout));
  }

  torch::Tensor forward(const GraphBatch& batch) override {
    const torch::Tensor sizes = batch.sizes.to(batch.graph_of.device()).index_select(0, batch.graph_of);
    const torch::Tensor group = batch.graph_of * kGroups + torch::div(batch.position * kGroups, sizes, "floor");
    const int64_t groups = batch.graphs * kGroups;
    const torch::Tensor encoded = nodes_(batch);
    torch::Tensor values = torch::zeros({groups, encoded.size(1)}, encoded.options()).index_add(0, group, encoded);
    values = values + size_(torch::log1p(counted(group, groups, encoded.options())).unsqueeze(1));
    values = torch::relu(values).view({batch.graphs, kGroups, -1});

    const torch::Tensor links =
        group.index_select(0, batch.target) * kGroups + torch::remainder(group.index_select(0, batch.source), kGroups);
    const torch::Tensor linked = torch::zeros({groups * kGroups}, encoded.options())
                                     .index_fill(0, links, 1)
                                     .view({batch.graphs, kGroups, kGroups});
    const torch::Tensor looped = torch::maximum(linked, torch::eye(kGroups, encoded.options()));
    const torch::Tensor scale = looped.sum(2).rsqrt();
    const torch::Tensor mixing = looped * scale.unsqueeze(1) * scale.unsqueeze(2);
    for (torch::nn::Linear& layer : layers_) values = torch::relu(torch::bmm(mixing, layer(values))) + values;
    const torch::Tensor graph_of_group =
        torch::arange(batch.graphs, batch.graph_of.options()).repeat_interleave(kGroups);
    return readout_(values.reshape({groups, -1}), graph_of_group, batch.graphs);
  }

 private:
  NodeEncoder nodes_ = nullptr;
  torch::nn::Linear size_ = nullptr;
  std::vector<torch::nn::Linear> layers_;
  Readout readout_ = nullptr;
};

}  // namespace

GraphSystem brp_nas_system() {
  return {.name = "brp-nas",
          .defaults = {.layers = 4, .hidden = 256},
          .make = [](const GraphOptions& options, const GraphWidths& widths) -> std::shared_ptr<GraphNet> {
            return std::make_shared<BrpNasNet>(options, widths);
          },
          .learning_rate = 4e-4};
}

GraphSystem grouping_gcn_system() {
  return {.name = "grouping-gcn",
          .defaults = {.layers = 8, .hidden = 64, .graph = "iteration", .scaler = "standard"},
          .make = [](const GraphOptions& options, const GraphWidths& widths) -> std::shared_ptr<GraphNet> {
            return std::make_shared<GroupingNet>(options, widths);
          }};
}

}  // namespace forerun::learn
