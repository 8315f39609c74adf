// Recurrent language models: an embedding, an LSTM, GRU or tanh RNN (one module of `layers` layers, or `layers` modules
// of one layer), and a linear layer to the vocabulary. Batch first, zero initial state, no dropout.
//
// Source: torch.nn.LSTM, GRU and RNN; the families lstm, rnn and gru differ in the default of `kind` alone. How cuDNN
// lays out the weights is for derivation to say.
#include <fmt/format.h>

#include <string>

#include "zoo/attention_layers.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

std::optional<RnnKind> kind_named(const std::string& name) {
  if (name == "lstm") return RnnKind::lstm;
  if (name == "gru") return RnnKind::gru;
  if (name == "rnn") return RnnKind::tanh;
  return std::nullopt;
}

void build_rnn(ForwardBuilder& b, const Configuration& c) {
  const std::optional<RnnKind> kind = kind_named(c.text("kind"));
  if (!kind) {
    b.fail(fmt::format("kind is '{}'", c.text("kind")), "set kind to lstm, gru or rnn");
    return;
  }
  if (!within(b, c, {"batch", "length", "vocab", "d", "h"}) || !within(b, c, {"layers"}, 1, kMostLayers)) return;
  const int64_t layers = c.integer("layers");
  const int64_t hidden = c.integer("h");
  const bool stack = c.flag("stack");
  const TensorId tokens = token_input(b, c);
  const Embedding embedding(b, "emb", c.integer("vocab"), c.integer("d"));
  std::vector<Rnn> modules;
  {
    const Scope scope(b, "r");
    for (int64_t i = 0; i < (stack ? layers : 1); ++i) {
      const RnnOptions options = {.kind = *kind, .hidden = hidden, .layers = stack ? 1 : layers};
      modules.emplace_back(b, std::to_string(i), i == 0 ? c.integer("d") : hidden, options);
    }
  }
  const Linear out(b, "out", hidden, c.integer("vocab"));
  TensorId x = embedding(tokens);
  for (const Rnn& module : modules) x = module(x);
  b.result(out(x));
}

Family family(const std::string& kind, const std::string& description) {
  return {.name = kind,
          .description = description,
          .input = InputKind::tokens,
          .parameters = with_token_parameters({{"kind", kind, "lstm, gru or rnn"},
                                               {"d", 512, "width of the embedding"},
                                               {"h", 512, "width of the hidden state"},
                                               {"layers", 2, "recurrent layers"},
                                               {"stack", false, "a module for each layer instead of one for all"}},
                                              20, 35, 10000),
          .build = build_rnn};
}

}  // namespace

std::vector<Family> rnn_families() {
  return {family("lstm", "LSTM language model"), family("rnn", "vanilla (tanh) RNN language model"),
          family("gru", "GRU language model")};
}

std::vector<NamedModel> rnn_models() {
  return {{"lstm_ptb_medium", "lstm", {{"d", 650}, {"h", 650}}},
          {"lstm_ptb_large", "lstm", {{"d", 1500}, {"h", 1500}}},
          {"gnmt", "lstm", {{"d", 1024}, {"h", 1024}, {"layers", 8}, {"vocab", 32000}, {"batch", 64}, {"length", 50}}}};
}

}  // namespace forerun::zoo
