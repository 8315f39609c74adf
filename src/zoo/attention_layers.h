// What the token and attention families share beyond torch.nn's layers: their input, range checks, the pieces that the
// transformers library builds attention from, and Python's indexing as PyTorch dispatches it.
#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "zoo/layers.h"
#include "zoo/zoo.h"

namespace forerun::zoo {

// What every token family also takes: batch, length, vocab. Its own parameters come first.
std::vector<Parameter> with_token_parameters(std::vector<Parameter> own, int64_t batch, int64_t length, int64_t vocab);

// The input of a token family: [batch, length] token numbers.
TensorId token_input(ForwardBuilder& b, const Configuration& c);

// Fails and answers false where one of these values lies outside [low, high].
constexpr int64_t kLargestExtent = int64_t{1} << 28;
constexpr int64_t kMostLayers = 4096;
bool within(ForwardBuilder& b, const Configuration& c, std::initializer_list<const char*> names, int64_t low = 1,
            int64_t high = kLargestExtent);
// Fails and answers false where `heads` do not divide `width`.
bool heads_divide(ForwardBuilder& b, int64_t heads, int64_t width);
// Fails and answers false where there are more tokens ("length") than "positions".
bool fits_positions(ForwardBuilder& b, const Configuration& c);
// Fails and answers false where `p` is not in [0, 1).
bool is_dropout(ForwardBuilder& b, double p);

constexpr int64_t kToEnd = std::numeric_limits<int64_t>::max();  // x[start:]

// x[..., :end, ...] along one dimension as Python indexing dispatches it: a slice, or an alias where all of it is
// taken.
TensorId take_first(ForwardBuilder& b, TensorId x, int64_t dim, int64_t end);
TensorId alias(ForwardBuilder& b, TensorId x);

// The scores of every token of the vocabulary, by the model's `lm_head`; one that is none of its own has the weights of the embedding.
TensorId token_scores(ForwardBuilder& b, TensorId hidden, const std::optional<Linear>& own_head,
                      const Embedding& words);

// Sets the model's result: the mean squared error of `prediction` against a `target` that is handed over.
void squared_error_result(ForwardBuilder& b, TensorId prediction, std::string_view target);

// torch.arange(length): [length] int64.
TensorId arange(ForwardBuilder& b, int64_t length);
// x[None, :, None, None] with `dim` the one that stays: [extent] -> rank 4.
TensorId along(ForwardBuilder& b, TensorId x, int64_t dim);
// torch.arange(length) + 0, then a leading dimension of 1: the position numbers of a sequence without a past.
TensorId position_numbers(ForwardBuilder& b, int64_t length);
// transformers looks once an iteration, where causal attention gets no mask, whether the numbers show several sequences
// packed into one: the host waits for the answer, which is no.
void look_for_packed_sequences(ForwardBuilder& b, TensorId positions, int64_t batch);

// [batch, length, heads * head] -> [batch, heads, length, head].
TensorId split_heads(ForwardBuilder& b, TensorId x, int64_t head);
// [batch, heads, length, head] -> [batch, length, heads * head].
TensorId merge_heads(ForwardBuilder& b, TensorId x);

// Fails and answers false where "attention" is neither sdpa nor eager.
bool is_attention(ForwardBuilder& b, const Configuration& c);
bool is_eager(const Configuration& c);
Parameter attention_parameter();

// What eager attention does beside its products and its softmax.
struct EagerAttention {
  double scale = 1;
  double dropout = 0;
  std::vector<TensorId> addends = {};  // masks and biases, added to the scores one by one
};
// Attention spelled out (attn_implementation="eager"): scores, their scaling, masks, softmax, dropout and the product with the
// values are ops of their own. Takes and gives [batch, heads, length, head].
TensorId eager_attention(ForwardBuilder& b, TensorId query, TensorId key, TensorId value,
                         const EagerAttention& options);
// The mask of eager causal attention: [batch, 1, length, length] of 0 and the lowest float.
TensorId causal_mask(ForwardBuilder& b, int64_t batch, int64_t length);
// A mask of padding, handed over with the tokens, as eager attention adds it: [batch, 1, 1, length] of 0 and the lowest float.
TensorId padding_mask(ForwardBuilder& b, TensorId given);

// The feed-forward part of torchvision's ViT and Swin blocks: mlp.0, GELU, mlp.3.
class Mlp {
 public:
  Mlp(ForwardBuilder& b, int64_t width, int64_t inner);
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string activation_path_;
  Linear inner_;
  Linear outer_;
};

// Root mean square norm with a weight, written out in float32 as LlamaRMSNorm and T5LayerNorm do.
class RmsNorm {
 public:
  RmsNorm(ForwardBuilder& b, std::string_view name, int64_t features, double eps = 1e-6);
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  double eps_;
  TensorId weight_;
};

}  // namespace forerun::zoo
