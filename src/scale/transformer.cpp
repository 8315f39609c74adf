#include "scale/transformer.h"

namespace forerun::scale {

int64_t Transformer::layer_parameters() const {
  const int64_t keys = kv_heads * head_size();
  const int64_t attention = hidden * (hidden + 2 * keys) + hidden * hidden;
  const int64_t feed_forward = (gated ? 3 : 2) * hidden * inner;
  const int64_t bias = biases ? hidden + 2 * keys + hidden + inner + hidden : 0;
  const int64_t norms = (biases ? 4 : 2) * hidden;
  return attention + feed_forward + bias + norms;
}

int64_t Transformer::embedding_parameters() const { return (vocab + positions) * hidden; }

int64_t Transformer::head_parameters() const { return (biases ? 2 : 1) * hidden + (tied ? 0 : vocab * hidden); }

int64_t Transformer::parameters() const {
  return embedding_parameters() + layers * layer_parameters() + head_parameters();
}

double Transformer::flops_per_sequence() const {
  const auto h = static_cast<double>(hidden);
  const auto s = static_cast<double>(sequence);
  const double keys = static_cast<double>(kv_heads * head_size());
  const double weights = h * (h + 2 * keys) + h * h + (gated ? 3 : 2) * h * static_cast<double>(inner);
  const double layer = 2 * weights + 4 * s * h;
  return 3 * s * (static_cast<double>(layers) * layer + 2 * h * static_cast<double>(vocab));
}

std::optional<Transformer> transformer_of(const zoo::Model& model) {
  const zoo::Configuration& c = model.configuration;
  Transformer t;
  t.name = model.family;
  if (model.family == "gpt2") {
    t.hidden = c.integer("width");
    t.inner = c.integer("inner") > 0 ? c.integer("inner") : 4 * t.hidden;
    t.positions = c.integer("positions");
  } else if (model.family == "llama") {
    t.hidden = c.integer("hidden");
    t.inner = c.integer("intermediate");
    t.gated = true;
    t.biases = false;
    t.tied = c.flag("tied");
  } else if (model.family == "bert" && c.text("head") == "mlm") {
    t.hidden = c.integer("hidden");
    t.inner = c.integer("intermediate");
    t.positions = c.integer("positions") + c.integer("types");
    t.causal = false;
  } else {
    return std::nullopt;
  }
  t.layers = c.integer("layers");
  t.heads = c.integer("heads");
  t.kv_heads = model.family == "llama" ? c.integer("kv_heads") : t.heads;
  t.vocab = c.integer("vocab");
  t.sequence = model.input.size;
  return t;
}

}  // namespace forerun::scale
