// What the language models of the transformers library (5.22) share beyond attention_layers.h: masks with and without a
// window, rotary positions, and root mean square norms in the three ways models write them.
//
// Casts stand where the source has them, so that parameters of any type and autocast give what PyTorch runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zoo/attention_layers.h"

namespace forerun::zoo {

struct MaskOptions {
  int64_t batch = 1;
  int64_t length = 1;
  int64_t window = 0;    // tokens that a query looks back at; 0: all
  bool chunked = false;  // the window is that of a part of the sequence: a query looks back as far as its part goes
  bool eager = false;    // added to scores, rather than handed to one attention op
};
// Which keys a query may see: [batch, 1, length, length] of booleans.
TensorId seen_keys(ForwardBuilder& b, const MaskOptions& options);
// The same to be added to scores: 0, and the lowest number for keys that are not seen.
TensorId added_mask(ForwardBuilder& b, TensorId seen);
// The mask of causal attention; none where the attention op masks by itself.
std::optional<TensorId> decoder_mask(ForwardBuilder& b, TensorId positions, const MaskOptions& options);

// The mask of attention to both sides with a window (of tokens to each side); none where it reaches everywhere.
std::optional<TensorId> encoder_mask(ForwardBuilder& b, const MaskOptions& options);

// Cosines and sines of a forward pass: [1, length, width].
struct RotaryTables {
  TensorId cosine, sine;
};
RotaryTables rotary_tables_of(ForwardBuilder& b, TensorId frequencies, TensorId positions, TensorId like);
// rotate_half: the second half of each head, negated, before the first.
TensorId turn_halves(ForwardBuilder& b, TensorId x);
// x * cosine + rotate_half(x) * sine; the tables are broadcast over heads.
TensorId rotate_halves(ForwardBuilder& b, TensorId x, const RotaryTables& tables);

// How a root mean square norm applies its weight: after the cast back to the input's type, before it, or as (1 + weight)
// before it.
enum class RmsWeight : uint8_t { after_cast, before_cast, one_plus };

class CastingRmsNorm {
 public:
  CastingRmsNorm(ForwardBuilder& b, std::string_view name, int64_t features, double eps, RmsWeight weight);
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  double eps_;
  RmsWeight kind_;
  TensorId weight_;
};

// An activation function as transformers names it: silu, gelu, gelu_pytorch_tanh, relu, ...
bool is_activation(ForwardBuilder& b, const std::string& name);
TensorId activate(ForwardBuilder& b, const std::string& name, TensorId x);

// tanh(x / cap) * cap
TensorId soft_cap(ForwardBuilder& b, TensorId x, double cap);

// torch.rand([]) < layerdrop, with layerdrop 0: a number that the library draws for each layer and reads on the host.
void draw_for_layer_drop(ForwardBuilder& b);

// Key-value heads repeated until there are as many as query heads: repeat_kv.
TensorId repeat_key_value_heads(ForwardBuilder& b, TensorId x, int64_t times);

}  // namespace forerun::zoo
