// BiRNN and ARNN: the nodes of a graph as a sequence in program order through a bidirectional recurrent network, its
// outputs summed (baselines of Gao et al., ICSE-SEIP 2023). ARNN's input has each node's adjacency too.
//
// The paper leaves cell and readout open: here gated recurrent units and DNNPerf's readout. Adjacency is that to the 16
// nodes before, which holds nearly all edges and keeps the input of one width for graphs of any size.
#include "lab/learn/baselines/graph_baselines.h"

namespace forerun::learn {
namespace {

constexpr int64_t kReach = 16;  // nodes before that adjacency tells of

// [nodes, kReach]: 1 where a node reads what the node so many places before it wrote.
torch::Tensor adjacency_before(const GraphBatch& batch) {
  const torch::Tensor distance = batch.target - batch.source;
  const torch::Tensor near = ((distance > 0) & (distance <= kReach)).nonzero().squeeze(1);
  const torch::Tensor place = batch.target.index_select(0, near) * kReach + distance.index_select(0, near) - 1;
  const int64_t nodes = batch.nodes.size(0);
  return torch::zeros({nodes * kReach}, batch.nodes.options()).index_fill(0, place, 1).view({nodes, kReach});
}

class SequenceNet : public GraphNet {
 public:
  SequenceNet(const GraphOptions& options, const GraphWidths& widths, bool adjacency) : adjacency_(adjacency) {
    nodes_ = register_module("nodes", NodeEncoder(widths, options.hidden));
    rnn_ = register_module(
        "rnn", torch::nn::GRU(torch::nn::GRUOptions(options.hidden + (adjacency ? kReach : 0), options.hidden)
                                  .num_layers(options.layers)
                                  .bidirectional(true)
                                  .batch_first(true)));
    out_ = register_module("out", torch::nn::Linear(2 * options.hidden, options.hidden));
    readout_ = register_module("readout", Readout(options.hidden, options.readout));
  }

  torch::Tensor forward(const GraphBatch& batch) override {
    namespace rnn = torch::nn::utils::rnn;
    torch::Tensor nodes = torch::relu(nodes_(batch));
    if (adjacency_) nodes = torch::cat({nodes, adjacency_before(batch)}, 1);
    const torch::Tensor lengths = batch.sizes.clamp_min(1);
    const int64_t longest = lengths.max().item<int64_t>();
    const torch::Tensor place = batch.graph_of * longest + batch.position;
    const torch::Tensor padded = torch::zeros({batch.graphs * longest, nodes.size(1)}, nodes.options())
                                     .index_copy(0, place, nodes)
                                     .view({batch.graphs, longest, nodes.size(1)});
    const rnn::PackedSequence packed = rnn::pack_padded_sequence(padded, lengths, true, false);
    const auto output = std::get<0>(rnn_->forward_with_packed_input(packed));
    const torch::Tensor all = std::get<0>(rnn::pad_packed_sequence(output, true));
    const torch::Tensor values = all.reshape({batch.graphs * longest, -1}).index_select(0, place);
    return readout_(torch::relu(out_(values)), batch.graph_of, batch.graphs);
  }

 private:
  bool adjacency_;
  NodeEncoder nodes_ = nullptr;
  torch::nn::GRU rnn_ = nullptr;
  torch::nn::Linear out_ = nullptr;
  Readout readout_ = nullptr;
};

template <bool adjacency>
GraphSystem sequence_system(const char* name) {
  return {.name = name,
          .defaults = {.layers = 1, .hidden = 64, .scaler = "standard"},
          .make = [](const GraphOptions& options, const GraphWidths& widths) -> std::shared_ptr<GraphNet> {
            return std::make_shared<SequenceNet>(options, widths, adjacency);
          }};
}

}  // namespace

GraphSystem birnn_system() { return sequence_system<false>("birnn"); }
GraphSystem arnn_system() { return sequence_system<true>("arnn"); }

}  // namespace forerun::learn
