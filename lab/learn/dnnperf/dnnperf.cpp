#include "lab/learn/dnnperf/dnnperf.h"

#include "base/check.h"

namespace forerun::learn {
namespace {

constexpr int64_t kHeads = 4;
constexpr double kSlope = 0.2;    // of the leaky ReLU in attention
constexpr double kFarthest = 30;  // that scores may lie from 0

enum class EdgeUse : uint8_t { encoded, concatenated, unused };

EdgeUse edge_use(const std::string& encoder) {
  if (encoder == "gat") return EdgeUse::unused;
  return encoder == "concat" ? EdgeUse::concatenated : EdgeUse::encoded;
}

// Softmax of scores [edges, heads] over the edges with the same target.
torch::Tensor softmax_by_target(const torch::Tensor& scores, const torch::Tensor& target, int64_t nodes) {
  const torch::Tensor raised = scores.clamp(-kFarthest, kFarthest).exp();
  const torch::Tensor sums = torch::zeros({nodes, scores.size(1)}, scores.options()).index_add(0, target, raised);
  return raised / sums.index_select(0, target);
}

// One round of the encoder.
class RoundImpl : public torch::nn::Module {
 public:
  // `renews`: it has a next round, which needs edges.
  RoundImpl(int64_t hidden, int64_t edge_width, EdgeUse use, bool renews)
      : use_(use), renews_(renews && use == EdgeUse::encoded) {
    const auto plain = [&](int64_t in, int64_t out) {
      return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false));
    };
    self_ = register_module("self", torch::nn::Linear(hidden, hidden));
    message_ = register_module("message", plain(hidden, hidden));
    to_ = register_module("attention_target", plain(hidden, kHeads));
    from_ = register_module("attention_source", plain(hidden, kHeads));
    if (use_ != EdgeUse::unused) edge_message_ = register_module("edge_message", plain(edge_width, hidden));
    if (use_ == EdgeUse::encoded) edge_attention_ = register_module("attention_edge", plain(edge_width, kHeads));
    if (renews_) {
      edge_self_ = register_module("edge_self", torch::nn::Linear(edge_width, edge_width));
      edge_ends_ = register_module("edge_ends", plain(hidden, 2 * edge_width));
    }
  }

  // `edges` is renewed for the next round.
  torch::Tensor forward(const torch::Tensor& nodes, torch::Tensor& edges, const GraphBatch& batch) {
    torch::Tensor scores = to_(nodes).index_select(0, batch.target) + from_(nodes).index_select(0, batch.source);
    torch::Tensor messages = message_(nodes).index_select(0, batch.source);
    if (use_ == EdgeUse::encoded) scores = scores + edge_attention_(edges);
    if (use_ != EdgeUse::unused) messages = messages + edge_message_(edges);
    const torch::Tensor attention = softmax_by_target(torch::leaky_relu(scores, kSlope), batch.target, nodes.size(0));
    const int64_t hidden = nodes.size(1);
    const torch::Tensor weighted =
        (messages.view({-1, kHeads, hidden / kHeads}) * attention.unsqueeze(2)).view({-1, hidden});
    const torch::Tensor gathered = torch::zeros_like(nodes).index_add(0, batch.target, weighted);
    if (renews_) {
      const std::vector<torch::Tensor> ends = edge_ends_(nodes).chunk(2, 1);
      edges = torch::relu(edge_self_(edges) + ends[0].index_select(0, batch.source) +
                          ends[1].index_select(0, batch.target));
    }
    return torch::relu(self_(nodes) + gathered) + nodes;
  }

 private:
  EdgeUse use_;
  bool renews_;
  torch::nn::Linear self_ = nullptr, message_ = nullptr, to_ = nullptr, from_ = nullptr;
  torch::nn::Linear edge_message_ = nullptr, edge_attention_ = nullptr, edge_self_ = nullptr, edge_ends_ = nullptr;
};
TORCH_MODULE(Round);

class DnnPerfNet : public GraphNet {
 public:
  DnnPerfNet(const GraphOptions& options, const GraphWidths& widths) : use_(edge_use(options.encoder)) {
    const int64_t hidden = (options.hidden + kHeads - 1) / kHeads * kHeads;
    const int64_t edge_width = use_ == EdgeUse::encoded ? hidden / 2 : int64_t{GraphFeatures::kEdgeWidth};
    nodes_ = register_module("nodes", NodeEncoder(widths, hidden));
    if (use_ == EdgeUse::encoded) {
      edges_ = register_module("edges", torch::nn::Linear(int64_t{GraphFeatures::kEdgeWidth}, edge_width));
    }
    for (int64_t i = 0; i < options.layers; ++i) {
      const bool renews = i + 1 < options.layers;
      rounds_.push_back(register_module("round" + std::to_string(i), Round(hidden, edge_width, use_, renews)));
    }
    readout_ = register_module("readout", Readout(hidden, options.readout));
  }

  torch::Tensor forward(const GraphBatch& batch) override {
    torch::Tensor nodes = torch::relu(nodes_(batch));
    torch::Tensor edges = use_ == EdgeUse::encoded ? torch::relu(edges_(batch.edges)) : batch.edges;
    for (Round& round : rounds_) nodes = round->forward(nodes, edges, batch);
    return readout_(nodes, batch.graph_of, batch.graphs);
  }

 private:
  EdgeUse use_;
  NodeEncoder nodes_ = nullptr;
  torch::nn::Linear edges_ = nullptr;
  std::vector<Round> rounds_;
  Readout readout_ = nullptr;
};

}  // namespace

GraphSystem dnnperf_system() {
  return {.name = "dnnperf",
          .defaults = {.layers = 3, .hidden = 64, .encoder = "anee", .readout = "log_sum"},
          .encoders = {"anee", "gat", "concat"},
          .make = [](const GraphOptions& options, const GraphWidths& widths) -> std::shared_ptr<GraphNet> {
            return std::make_shared<DnnPerfNet>(options, widths);
          }};
}

}  // namespace forerun::learn
