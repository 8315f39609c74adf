// The encoder layer of BERT and its kin (transformers): attention and feed-forward, each with dropout, residual and norm
// behind it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zoo/attention_layers.h"

namespace forerun::zoo {

struct BertSizes {
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t intermediate = 0;
  double dropout = 0;
  double attention_dropout = 0;
  double eps = 1e-12;
  std::string activation = "gelu";
};

// A linear layer with dropout, residual and norm: BertSelfOutput and BertOutput.
class ResidualOutput {
 public:
  ResidualOutput(ForwardBuilder& b, std::string_view name, int64_t in, const BertSizes& s);
  TensorId operator()(TensorId x, TensorId residual) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  Linear dense_;
  LayerNorm norm_;
  Dropout dropout_;
};

class BertLayer {
 public:
  BertLayer(ForwardBuilder& b, const BertSizes& s);
  // `mask`: what eager attention adds to its scores; none: sdpa.
  TensorId operator()(TensorId x, std::optional<TensorId> mask = std::nullopt) const;

 private:
  [[nodiscard]] TensorId attend(TensorId x, std::optional<TensorId> mask) const;
  [[nodiscard]] TensorId activated(TensorId x) const;

  ForwardBuilder& b_;
  std::string path_;
  BertSizes sizes_;
  Linear query_, key_, value_;
  ResidualOutput attention_output_;
  Linear intermediate_;
  ResidualOutput output_;
};

}  // namespace forerun::zoo
