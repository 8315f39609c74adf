// Layers as torch.nn has them: the constructor registers parameters (in registration order), the call appends ops.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/forward_builder.h"

namespace forerun::zoo {

struct Conv2dOptions {
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  int64_t dilation = 1;
  bool bias = true;
  int64_t kernel_w = 0;    // 0: square
  int64_t padding_w = -1;  // -1: as `padding`
};

class Conv2d {
 public:
  Conv2d(ForwardBuilder& b, std::string_view name, int64_t in, int64_t out, const Conv2dOptions& options);
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  ConvOptions options_;
  TensorId weight_;
  std::optional<TensorId> bias_;
};

class BatchNorm {
 public:
  BatchNorm(ForwardBuilder& b, std::string_view name, int64_t features, double eps = 1e-5, double momentum = 0.1);
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  double eps_;
  double momentum_;
  TensorId weight_, bias_, mean_, variance_, tracked_;
};

class Linear {
 public:
  Linear(ForwardBuilder& b, std::string_view name, int64_t in, int64_t out, bool bias = true);
  TensorId operator()(TensorId x) const;
  [[nodiscard]] TensorId weight() const { return weight_; }

 private:
  ForwardBuilder& b_;
  std::string path_;
  TensorId weight_;
  std::optional<TensorId> bias_;
};

class LayerNorm {
 public:
  LayerNorm(ForwardBuilder& b, std::string_view name, int64_t features, double eps = 1e-5, bool bias = true);
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  Shape normalized_;
  double eps_;
  TensorId weight_;
  std::optional<TensorId> bias_;
};

class Embedding {
 public:
  Embedding(ForwardBuilder& b, std::string_view name, int64_t count, int64_t width, int64_t padding_index = -1);
  TensorId operator()(TensorId indices) const;
  [[nodiscard]] TensorId weight() const { return weight_; }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t padding_index_;
  TensorId weight_;
};

class Dropout {
 public:
  Dropout(ForwardBuilder& b, std::string_view name, double p) : b_(b), path_(b.path_of(name)), p_(p) {}
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  double p_;
};

// nn.MultiheadAttention(need_weights=False), as F.multi_head_attention_forward runs it: packed projection, fused attention.
struct MultiheadOptions {
  double dropout = 0;
  bool batch_first = true;
  bool causal = false;
};

class MultiheadAttention {
 public:
  MultiheadAttention(ForwardBuilder& b, std::string_view name, int64_t width, int64_t heads,
                     const MultiheadOptions& options);
  TensorId self(TensorId x) const { return run(x, x); }
  TensorId cross(TensorId query, TensorId memory) const { return run(query, memory); }

 private:
  [[nodiscard]] TensorId run(TensorId query, TensorId memory) const;

  ForwardBuilder& b_;
  std::string path_;
  int64_t width_;
  int64_t heads_;
  MultiheadOptions options_;
  TensorId in_weight_, in_bias_, out_weight_, out_bias_;
};

// nn.LSTM, nn.GRU or nn.RNN: weights w_ih, w_hh, b_ih, b_hh for each layer.
class Rnn {
 public:
  Rnn(ForwardBuilder& b, std::string_view name, int64_t in, const RnnOptions& options);
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  RnnOptions options_;
  std::vector<TensorId> weights_;
};

// Rounds channel counts as torchvision does: to a multiple of `divisor`, never below 90 % of `value`.
int64_t make_divisible(double value, int64_t divisor);

}  // namespace forerun::zoo
