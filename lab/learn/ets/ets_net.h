// The network of ETS: features of the ops of a window -> (GPU time, gap) of each; and the cells of its ablation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lab/learn/torch.h"

namespace forerun::learn {

enum class EtsCell : uint8_t { rnn, gru, lstm, transformer, gcn, mlp };
std::string_view name_of(EtsCell cell);
std::optional<EtsCell> ets_cell_named(std::string_view name);

struct EtsNetOptions {
  EtsCell cell = EtsCell::lstm;
  int64_t layers = 4;
  bool bidirectional = true;  // of recurrent cells
  int64_t features = 66;
  int64_t hidden = 66;
  int64_t width = 12;
  double dropout = 0;  // between layers of recurrent cells
};

class EtsNetImpl : public torch::nn::Module {
 public:
  explicit EtsNetImpl(EtsNetOptions options);

  // windows: [batch, width, features]; present: [batch, width], 1 where there is an op; adjacency: [batch, width, width]
  // of ops that follow from one another, only for gcn. Gives [batch, width, 2].
  torch::Tensor forward(const torch::Tensor& windows, const torch::Tensor& present, const torch::Tensor& adjacency);

 private:
  torch::Tensor convolve(torch::Tensor hidden, const torch::Tensor& present, const torch::Tensor& adjacency);

  EtsNetOptions options_;
  torch::nn::RNN rnn_ = nullptr;
  torch::nn::GRU gru_ = nullptr;
  torch::nn::LSTM lstm_ = nullptr;
  torch::nn::Linear embedding_ = nullptr;  // of transformer
  torch::Tensor positions_;
  torch::nn::TransformerEncoder transformer_ = nullptr;
  torch::nn::ModuleList layers_ = nullptr;  // of gcn and mlp
  torch::nn::Linear head_ = nullptr;
};
TORCH_MODULE(EtsNet);

}  // namespace forerun::learn
