#include "lab/learn/ets/ets_net.h"

#include "base/check.h"

namespace forerun::learn {
namespace {

constexpr int64_t kTransformerHeads = 6;
constexpr int64_t kOutputs = 2;

template <class Options>
Options recurrent(const EtsNetOptions& options) {
  return Options(options.features, options.hidden)
      .num_layers(options.layers)
      .bidirectional(options.bidirectional)
      .dropout(options.dropout)
      .batch_first(true);
}

}  // namespace

std::string_view name_of(EtsCell cell) {
  switch (cell) {
    case EtsCell::rnn: return "rnn";
    case EtsCell::gru: return "gru";
    case EtsCell::lstm: return "lstm";
    case EtsCell::transformer: return "transformer";
    case EtsCell::gcn: return "gcn";
    case EtsCell::mlp: break;
  }
  return "mlp";
}

std::optional<EtsCell> ets_cell_named(std::string_view name) {
  for (const EtsCell cell :
       {EtsCell::rnn, EtsCell::gru, EtsCell::lstm, EtsCell::transformer, EtsCell::gcn, EtsCell::mlp}) {
    if (name == name_of(cell)) return cell;
  }
  return std::nullopt;
}

EtsNetImpl::EtsNetImpl(EtsNetOptions options) : options_(options) {
  int64_t width = options_.hidden;
  switch (options_.cell) {
    case EtsCell::rnn: rnn_ = register_module("rnn", torch::nn::RNN(recurrent<torch::nn::RNNOptions>(options_))); break;
    case EtsCell::gru: gru_ = register_module("gru", torch::nn::GRU(recurrent<torch::nn::GRUOptions>(options_))); break;
    case EtsCell::lstm:
      lstm_ = register_module("lstm", torch::nn::LSTM(recurrent<torch::nn::LSTMOptions>(options_)));
      break;
    case EtsCell::transformer: {
      width = (options_.hidden + kTransformerHeads - 1) / kTransformerHeads * kTransformerHeads;
      embedding_ = register_module("embedding", torch::nn::Linear(options_.features, width));
      positions_ = register_parameter("positions", 0.02 * torch::randn({options_.width, width}));
      const auto layer =
          torch::nn::TransformerEncoderLayerOptions(width, kTransformerHeads).dim_feedforward(4 * width).dropout(0);
      transformer_ = register_module(
          "transformer", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, options_.layers)));
      break;
    }
    case EtsCell::gcn:
    case EtsCell::mlp:
      layers_ = register_module("layers", torch::nn::ModuleList());
      for (int64_t i = 0; i < options_.layers; ++i) {
        const int64_t before = i == 0 ? options_.features : width;
        if (i > 0 && options_.cell == EtsCell::mlp) width = std::max(width / 2, kOutputs);
        layers_->push_back(torch::nn::Linear(before, width));
      }
      break;
  }
  const bool recurrent = options_.cell <= EtsCell::lstm;
  head_ = register_module("head", torch::nn::Linear(recurrent && options_.bidirectional ? 2 * width : width, kOutputs));
}

torch::Tensor EtsNetImpl::forward(const torch::Tensor& windows, const torch::Tensor& present,
                                  const torch::Tensor& adjacency) {
  switch (options_.cell) {
    case EtsCell::rnn: return head_(std::get<0>(rnn_(windows)));
    case EtsCell::gru: return head_(std::get<0>(gru_(windows)));
    case EtsCell::lstm: return head_(std::get<0>(lstm_(windows)));
    case EtsCell::transformer: {
      const torch::Tensor hidden = (embedding_(windows) + positions_).transpose(0, 1);
      return head_(transformer_(hidden, torch::Tensor(), present == 0).transpose(0, 1));
    }
    case EtsCell::gcn:
    case EtsCell::mlp: break;
  }
  return head_(convolve(windows, present, adjacency));
}

// Graph convolution with symmetrically normalised adjacency and self-loops; without adjacency, layers op by op.
torch::Tensor EtsNetImpl::convolve(torch::Tensor hidden, const torch::Tensor& present, const torch::Tensor& adjacency) {
  torch::Tensor mixing;
  if (options_.cell == EtsCell::gcn) {
    CHECK(adjacency.defined(), "graph convolution needs to know what follows from what");
    const torch::Tensor linked = adjacency + torch::eye(options_.width, adjacency.options());
    const torch::Tensor scale = (linked * present.unsqueeze(1)).sum(2).clamp_min(1).rsqrt();
    mixing = linked * present.unsqueeze(1) * scale.unsqueeze(1) * scale.unsqueeze(2);
  }
  for (size_t i = 0; i < layers_->size(); ++i) {
    hidden = layers_[i]->as<torch::nn::Linear>()->forward(hidden);
    if (mixing.defined()) hidden = torch::bmm(mixing, hidden);
    hidden = torch::relu(hidden);
  }
  return hidden;
}

}  // namespace forerun::learn
