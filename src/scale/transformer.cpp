#include "scale/transformer.h"

namespace forerun::scale {

int64_t Transformer::layer_parameters() const {
  const int64_t projected = query_size() + 2 * key_size();
  const int64_t attention = hidden * projected + query_size() * hidden;
  const int64_t feed_forward = (gated ? 3 : 2) * hidden * inner;
  const int64_t bias = biases ? projected + hidden + inner + hidden : query_biases ? projected : 0;
  const int64_t norms = (biases ? 4 : 2) * hidden + query_norm_size;
  return attention + feed_forward + bias + norms;
}

int64_t Transformer::embedding_parameters() const { return (vocab + positions) * hidden; }

int64_t Transformer::head_parameters() const { return (biases ? 2 : 1) * hidden + (tied ? 0 : vocab * hidden); }

int64_t Transformer::parameters() const {
  return embedding_parameters() + layers * layer_parameters() + head_parameters();
}

double Transformer::linear_flops_per_sequence() const {
  const auto h = static_cast<double>(hidden);
  const auto queries = static_cast<double>(query_size());
  const auto keys = static_cast<double>(key_size());
  const double weights = h * (queries + 2 * keys) + queries * h + (gated ? 3 : 2) * h * static_cast<double>(inner);
  return 6 * static_cast<double>(sequence) * static_cast<double>(layers) * weights;
}

double Transformer::flops_per_sequence(bool fused) const {
  const auto s = static_cast<double>(sequence);
  const double scores = (fused && causal ? 2 : 4) * s * static_cast<double>(layers * query_size());
  return linear_flops_per_sequence() + 3 * s * (scores + 2 * static_cast<double>(hidden * vocab));
}

namespace {

// Whether a layer of the zoo's decoder is Llama's, but for biases and norms of queries and keys.
bool is_like_llama(const zoo::Configuration& c, int64_t sequence) {
  const bool whole_attention = c.text("pattern").find('s') == std::string::npos || c.integer("window") >= sequence;
  return c.integer("experts") == 0 && !c.flag("chunked") && c.integer("key_rank") == 0 &&
         c.text("norm_side") == "before" && whole_attention && c.real("attention_softcap") == 0 &&
         c.real("softcap") == 0 && !c.flag("out_bias") && !c.flag("mlp_bias");
}

Transformer gated_decoder(const zoo::Configuration& c) {
  Transformer t;
  t.hidden = c.integer("hidden");
  t.inner = c.integer("intermediate");
  t.kv_heads = c.integer("kv_heads");
  t.gated = true;
  t.biases = false;
  t.tied = c.flag("tied");
  return t;
}

}  // namespace

std::optional<Transformer> transformer_of(const zoo::Model& model) {
  const zoo::Configuration& c = model.configuration;
  Transformer t;
  if (model.family == "gpt2") {
    t.hidden = c.integer("width");
    t.inner = c.integer("inner") > 0 ? c.integer("inner") : 4 * t.hidden;
    t.positions = c.integer("positions");
  } else if (model.family == "llama") {
    t = gated_decoder(c);
  } else if (model.family == "decoder" && is_like_llama(c, model.input.size)) {
    t = gated_decoder(c);
    t.head = c.integer("head");
    t.query_biases = c.flag("qkv_bias");
  } else if (model.family == "bert" && c.text("head") == "mlm") {
    t.hidden = c.integer("hidden");
    t.inner = c.integer("intermediate");
    t.positions = c.integer("positions") + c.integer("types");
    t.causal = false;
  } else {
    return std::nullopt;
  }
  t.name = model.family;
  t.layers = c.integer("layers");
  t.heads = c.integer("heads");
  if (t.kv_heads == 0) t.kv_heads = t.heads;
  t.vocab = c.integer("vocab");
  t.sequence = model.input.size;
  if (model.family == "decoder" && c.text("query_norm") != "none") {
    t.query_norm_size = c.text("query_norm") == "width" ? t.query_size() + t.key_size() : 2 * t.head_size();
  }
  return t;
}

}  // namespace forerun::scale
