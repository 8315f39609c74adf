#include "lab/learn/driple/driple_net.h"

namespace forerun::learn {
namespace {

constexpr int64_t kDripleHeads = 4;
constexpr double kDripleSlope = 0.01;
constexpr double kAttentionSlope = 0.2;
constexpr double kFarthestScore = 30;
constexpr int64_t kSet2SetSteps = 12;
constexpr int64_t kDripleOutputs = 12;

// Softmax of scores [n, heads] over those of the same segment.
torch::Tensor segment_softmax(const torch::Tensor& scores, const torch::Tensor& segment, int64_t segments) {
  const torch::Tensor raised = scores.clamp(-kFarthestScore, kFarthestScore).exp();
  const torch::Tensor sums = torch::zeros({segments, scores.size(1)}, scores.options()).index_add(0, segment, raised);
  return raised / sums.index_select(0, segment);
}

torch::Tensor segment_sum(const torch::Tensor& values, const torch::Tensor& segment, int64_t segments) {
  return torch::zeros({segments, values.size(1)}, values.options()).index_add(0, segment, values);
}

torch::nn::Linear linear_without_bias(int64_t in, int64_t out) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false));
}

}  // namespace

GraphLayerImpl::GraphLayerImpl(const std::string& kind, int64_t in, int64_t out) : kind_(kind), out_(out) {
  first_ = register_module("first", torch::nn::Linear(in, out));
  if (kind_ == "gin") second_ = register_module("second", torch::nn::Linear(out, out));
  if (kind_ == "mpnn") second_ = register_module("second", linear_without_bias(in, out));
  if (kind_ == "gat" || kind_ == "mpnn") {
    to_ = register_module("to", linear_without_bias(in, kind_ == "gat" ? kDripleHeads : out));
    from_ = register_module("from", linear_without_bias(in, kind_ == "gat" ? kDripleHeads : out));
  }
}

torch::Tensor GraphLayerImpl::attend(const torch::Tensor& nodes, const DripleBatch& batch) {
  const torch::Tensor scores = torch::leaky_relu(
      to_(nodes).index_select(0, batch.target) + from_(nodes).index_select(0, batch.source), kAttentionSlope);
  const torch::Tensor attention = segment_softmax(scores, batch.target, nodes.size(0));
  const torch::Tensor messages = first_(nodes).index_select(0, batch.source);
  return segment_sum((messages.view({-1, kDripleHeads, out_ / kDripleHeads}) * attention.unsqueeze(2)).view({-1, out_}),
                     batch.target, nodes.size(0));
}

torch::Tensor GraphLayerImpl::forward(const torch::Tensor& nodes, const DripleBatch& batch) {
  if (kind_ == "gat") return attend(nodes, batch);
  if (kind_ == "gin") {
    const torch::Tensor sum = segment_sum(nodes.index_select(0, batch.source), batch.target, nodes.size(0));
    return second_(torch::relu(first_(sum)));
  }
  if (kind_ == "mpnn") {
    const torch::Tensor messages =
        torch::relu(to_(nodes).index_select(0, batch.target) + from_(nodes).index_select(0, batch.source));
    const torch::Tensor counts = segment_sum(torch::ones_like(batch.weight), batch.target, nodes.size(0));
    return first_(nodes) + segment_sum(messages, batch.target, nodes.size(0)) / counts;
  }
  // The same whether neighbours are added up before or after the linear layer, but for the bias.
  const torch::Tensor mixed =
      segment_sum(nodes.index_select(0, batch.source) * batch.weight, batch.target, nodes.size(0));
  return first_(mixed);
}

Set2SetImpl::Set2SetImpl(int64_t hidden) : hidden_(hidden) {
  cell_ = register_module("cell", torch::nn::LSTMCell(2 * hidden, hidden));
}

torch::Tensor Set2SetImpl::forward(const torch::Tensor& nodes, const DripleBatch& batch) {
  torch::Tensor answer = torch::zeros({batch.graphs, 2 * hidden_}, nodes.options());
  torch::Tensor query = torch::zeros({batch.graphs, hidden_}, nodes.options());
  torch::Tensor memory = torch::zeros({batch.graphs, hidden_}, nodes.options());
  for (int64_t step = 0; step < kSet2SetSteps; ++step) {
    std::tie(query, memory) = cell_(answer, std::make_tuple(query, memory));
    const torch::Tensor scores = (nodes * query.index_select(0, batch.graph_of)).sum(1, true);
    const torch::Tensor attention = segment_softmax(scores, batch.graph_of, batch.graphs);
    answer = torch::cat({query, segment_sum(nodes * attention, batch.graph_of, batch.graphs)}, 1);
  }
  return answer;
}

DripleNet::DripleNet(const DripleShape& shape) : shape_(shape) {
  first_ = register_module("first", GraphLayer(shape.layer, 3, shape.hidden));
  repeated_ = register_module("repeated", GraphLayer(shape.layer, shape.hidden, shape.hidden));
  late_ = register_module("late", GraphLayer(shape.layer, shape.hidden, shape.hidden));
  gru_ = register_module("gru", torch::nn::GRUCell(shape.hidden, shape.hidden));
  const bool attends = shape.readout == "set2set";
  if (attends) set2set_ = register_module("set2set", Set2Set(shape.hidden));
  const int64_t width = (attends ? 2 * shape.hidden : shape.hidden) + shape.globals;
  mlp1_ = register_module("mlp1", torch::nn::Linear(width, shape.hidden));
  mlp2_ = register_module("mlp2", torch::nn::Linear(shape.hidden, shape.hidden));
  mlp3_ = register_module("mlp3", torch::nn::Linear(shape.hidden, kDripleOutputs));
}

void DripleNet::share_layers() {
  torch::NoGradGuard guard;
  const std::vector<torch::Tensor> from = repeated_->parameters();
  std::vector<torch::Tensor> to = late_->parameters();
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  apart_ = false;
}

void DripleNet::tune_parts(const std::vector<std::string>& parts, double late) {
  shape_.late = late;
  for (torch::Tensor& parameter : parameters()) parameter.set_requires_grad(false);
  const auto tune = [](torch::nn::Module* module) {
    for (torch::Tensor& parameter : module->parameters()) parameter.set_requires_grad(true);
  };
  for (const std::string& part : parts) {
    if (part == "first") tune(first_.get());
    if (part == "late") {
      if (!apart_) share_layers();
      apart_ = true;
      tune(late_.get());
    }
    if (part == "gru") tune(gru_.get());
    if (part == "readout" && set2set_) tune(set2set_.get());
    if (part == "mlp") {
      for (torch::nn::Linear* layer : {&mlp1_, &mlp2_, &mlp3_}) tune(layer->get());
    }
  }
}

void DripleNet::tune_all() {
  for (torch::Tensor& parameter : parameters()) parameter.set_requires_grad(true);
}

torch::Tensor DripleNet::pooled(const torch::Tensor& nodes, const DripleBatch& batch) {
  if (set2set_) return set2set_(nodes, batch);
  if (shape_.readout == "max") {
    return torch::full({batch.graphs, nodes.size(1)}, -1e30, nodes.options())
        .scatter_reduce(0, batch.graph_of.unsqueeze(1).expand_as(nodes), nodes, "amax");
  }
  const torch::Tensor sum = segment_sum(nodes, batch.graph_of, batch.graphs);
  if (shape_.readout == "sum") return sum;
  const torch::Tensor ones = torch::ones({nodes.size(0), 1}, nodes.options());
  return sum / segment_sum(ones, batch.graph_of, batch.graphs).clamp_min(1);
}

torch::Tensor DripleNet::forward(const DripleBatch& batch) {
  torch::Tensor nodes = torch::leaky_relu(first_(batch.nodes, batch), kDripleSlope);
  nodes = gru_(nodes, nodes);
  const auto early = static_cast<int64_t>(static_cast<double>(shape_.depth) * (1 - shape_.late));
  for (int64_t depth = 1; depth < shape_.depth; ++depth) {
    GraphLayer& layer = apart_ && depth >= early ? late_ : repeated_;
    nodes = gru_(torch::leaky_relu(layer(nodes, batch), kDripleSlope), nodes);
  }
  torch::Tensor graph = pooled(nodes, batch);
  if (shape_.globals > 0) graph = torch::cat({graph, batch.globals}, 1);
  if (shape_.dropout > 0) graph = torch::dropout(graph, shape_.dropout, is_training());
  graph = torch::leaky_relu(mlp1_(graph), kDripleSlope);
  return mlp3_(torch::leaky_relu(mlp2_(graph), kDripleSlope));
}

}  // namespace forerun::learn
