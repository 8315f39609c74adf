// MLP: layers over each node by itself, summed over the graph, then layers over the sum (Gao et al., ICSE-SEIP 2023).
// It has DNNPerf's features and readout but sees no edges. The paper leaves open how nodes become one input; a sum
// takes graphs of any size.
#include "lab/learn/baselines/graph_baselines.h"

namespace forerun::learn {
namespace {

class MlpNet : public GraphNet {
 public:
  MlpNet(const GraphOptions& options, const GraphWidths& widths) {
    nodes_ = register_module("nodes", NodeEncoder(widths, options.hidden));
    for (int64_t i = 1; i < options.layers; ++i) {
      layers_.push_back(
          register_module("layer" + std::to_string(i), torch::nn::Linear(options.hidden, options.hidden)));
    }
    readout_ = register_module("readout", Readout(options.hidden, options.readout));
  }

  torch::Tensor forward(const GraphBatch& batch) override {
    torch::Tensor nodes = torch::relu(nodes_(batch));
    for (torch::nn::Linear& layer : layers_) nodes = torch::relu(layer(nodes));
    return readout_(nodes, batch.graph_of, batch.graphs);
  }

 private:
  NodeEncoder nodes_ = nullptr;
  std::vector<torch::nn::Linear> layers_;
  Readout readout_ = nullptr;
};

}  // namespace

GraphSystem mlp_system() {
  return {.name = "mlp",
          .defaults = {.layers = 3, .hidden = 128, .scaler = "standard"},
          .make = [](const GraphOptions& options, const GraphWidths& widths) -> std::shared_ptr<GraphNet> {
            return std::make_shared<MlpNet>(options, widths);
          }};
}

}  // namespace forerun::learn
