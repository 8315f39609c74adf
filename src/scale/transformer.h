// Transformer: the shape of a stack of equal transformer layers, as far as splitting it over GPUs is concerned.
//
// Decoder and encoder stacks with an embedding in front and a language-model head behind: GPT-2 and 3, Llama and the
// checkpoints and config.json files that are built like it (Mistral, Qwen 2 and 3, Yi), BERT. Counts of parameters are exact
// for decoders. Left out: encoder-decoder stacks, experts, latent attention, windows shorter than the sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "zoo/zoo.h"

namespace forerun::scale {

struct Transformer {
  std::string name;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // of keys and values; as many as heads unless they are grouped
  int64_t head = 0;      // width of a head; 0: hidden over heads
  int64_t inner = 0;     // width of the feed-forward layers
  int64_t vocab = 0;
  int64_t positions = 0;  // learned ones; 0: rotary
  int64_t sequence = 0;
  bool gated = false;  // a feed-forward layer of three products (Llama)
  bool biases = true;
  bool query_biases = false;    // of queries, keys and values alone (Qwen 2)
  int64_t query_norm_size = 0;  // parameters of a layer's norms of queries and keys (Qwen 3)
  bool tied = true;             // the head shares the embedding's weight
  bool causal = true;

  [[nodiscard]] int64_t head_size() const { return head > 0 || heads == 0 ? head : hidden / heads; }
  [[nodiscard]] int64_t query_size() const { return heads * head_size(); }  // of all heads
  [[nodiscard]] int64_t key_size() const { return kv_heads * head_size(); }
  [[nodiscard]] int64_t layer_parameters() const;
  [[nodiscard]] int64_t embedding_parameters() const;
  [[nodiscard]] int64_t head_parameters() const;  // last norm, and the head's weight unless it is tied
  [[nodiscard]] int64_t parameters() const;
  // Of one sequence, forward and backward, nothing run twice; the matrix products only. `fused`: attention that leaves out what
  // a causal mask hides, which is half of it.
  [[nodiscard]] double flops_per_sequence(bool fused) const;
  [[nodiscard]] double linear_flops_per_sequence() const;  // of these, with weights of the layers
};

// The shape of a zoo model; nothing where its family is not such a stack.
std::optional<Transformer> transformer_of(const zoo::Model& model);

}  // namespace forerun::scale
