// Mamba: selective state spaces, as a causal language model.
//
// Source: MambaForCausalLM of transformers 5.22 where no kernels of mamba_ssm or causal_conv1d are installed: the scan is a
// loop over the sequence, some eight ops a token and layer, each with its way back. Left out: those kernels, mambapy, compiled
// models (which scan in parallel).
#include <fmt/format.h>

#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct MambaOptions {
  int64_t hidden, inner, state, rank, kernel;
  double eps;
  bool bias, conv_bias, wide_residual;
  std::string activation;
};

class MambaMixer {
 public:
  MambaMixer(ForwardBuilder& b, const MambaOptions& o)
      : b_(b),
        path_(b.path_of("")),
        o_(o),
        decay_(b.parameter("A_log", {o.inner, o.state})),
        skip_(b.parameter("D", {o.inner})),
        conv_weight_(b.parameter("conv1d.weight", {o.inner, 1, o.kernel})) {
    if (o.conv_bias) conv_bias_ = b.parameter("conv1d.bias", {o.inner});
    in_.emplace(b, "in_proj", o.hidden, 2 * o.inner, o.bias);
    selection_.emplace(b, "x_proj", o.inner, o.rank + 2 * o.state, false);
    step_weight_ = b.parameter("dt_proj.weight", {o.inner, o.rank});
    step_bias_ = b.parameter("dt_proj.bias", {o.inner});
    out_.emplace(b, "out_proj", o.inner, o.hidden, o.bias);
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId entered = x;
    const TensorId projected = b_.transpose((*in_)(x), 1, 2);
    const TensorId decay = b_.unary("aten.neg.default", b_.unary("aten.exp.default", real(decay_)));
    real(skip_);       // handed to a kernel that is not there
    real(step_bias_);  // as well
    const std::vector<TensorId> halves = b_.chunk(projected, 2, 1);
    if (halves.size() != 2) return x;  // after an error
    const TensorId mixed = convolved(halves[0]);
    const TensorId rows = b_.transpose(mixed, 1, 2);
    const std::vector<TensorId> parts = b_.split((*selection_)(rows), {o_.rank, o_.state, o_.state}, -1);
    if (parts.size() != 3) return x;  // after an error
    const TensorId step = b_.matmul(step_weight_, b_.transpose(parts[0], 1, 2));
    const TensorId y = scanned(
        {b_.transpose(rows, 1, 2), halves[1], step, decay, b_.transpose(parts[1], 1, 2), b_.transpose(parts[2], 1, 2)});
    return (*out_)(b_.type_as(b_.transpose(y, 1, 2), entered));
  }

 private:
  // What the scan reads: [batch, inner, length] of inputs, gates and steps, decays, and what goes into and out of the state.
  struct Scan {
    TensorId x, gate, step, decay, into, out_of;
  };

  TensorId real(TensorId x) const { return b_.to_dtype(x, DType::float32); }

  // Over the tokens before, each channel by itself.
  [[nodiscard]] TensorId convolved(TensorId x) const {
    const int64_t length = b_.extent(x, 2);
    const TensorId weight = b_.unsqueeze(b_.squeeze(conv_weight_, 1), 1);
    TensorId y = b_.conv(b_.type_as(x, conv_weight_), weight, conv_bias_,
                         {.stride = {1}, .padding = {o_.kernel - 1}, .groups = o_.inner});
    y = activate(b_, o_.activation, take_first(b_, y, 2, length));
    return b_.type_as(y, x);
  }

  [[nodiscard]] TensorId scanned(const Scan& s) const {
    const int64_t batch = b_.extent(s.x, 0);
    const int64_t length = b_.extent(s.x, 2);
    TensorId step = b_.add(s.step, b_.unsqueeze(b_.type_as(real(step_bias_), s.step), 1));
    step = b_.unary("aten.softplus.default", step);
    const TensorId into = b_.transpose(s.into, 1, 2);
    const TensorId out_of = b_.transpose(s.out_of, 1, 2);
    const TensorId spread = b_.unsqueeze(b_.unsqueeze(s.decay, 0), 2);
    const TensorId kept = b_.unary("aten.exp.default", b_.mul(spread, b_.unsqueeze(step, 3)));
    const TensorId weight = b_.mul(b_.unsqueeze(step, 3), real(b_.unsqueeze(into, 1)));
    const TensorId added = b_.mul(weight, real(b_.unsqueeze(s.x, 3)));
    TensorId state = b_.create("aten.zeros.default", {batch, o_.inner, o_.state}, DType::float32, {{"autocast", true}});
    std::vector<TensorId> outputs;
    for (int64_t i = 0; i < length; ++i) {
      state = b_.mul(b_.select(kept, 2, i), state);
      state = b_.add(state, b_.select(added, 2, i));
      const TensorId typed = b_.type_as(state, s.x);
      const TensorId y = b_.matmul(typed, b_.unsqueeze(b_.select(out_of, 1, i), -1));
      outputs.push_back(b_.select(y, 2, 0));
    }
    TensorId y = b_.stack(outputs, -1);
    const TensorId skip = b_.unsqueeze(b_.unsqueeze(real(skip_), 0), 2);
    y = b_.add(y, b_.mul(s.x, skip));
    return b_.mul(y, b_.unary("aten.silu.default", s.gate));
  }

  ForwardBuilder& b_;
  std::string path_;
  MambaOptions o_;
  TensorId decay_, skip_, conv_weight_;
  std::optional<TensorId> conv_bias_;
  std::optional<Linear> in_, selection_, out_;
  TensorId step_weight_, step_bias_;
};

class MambaBlock {
 public:
  MambaBlock(ForwardBuilder& b, const MambaOptions& o)
      : b_(b),
        path_(b.path_of("")),
        wide_residual_(o.wide_residual),
        norm_(b, "norm", o.hidden, o.eps, RmsWeight::after_cast) {
    const Scope scope(b, "mixer");
    mixer_.emplace(b, o);
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId y = norm_(x);
    const TensorId residual = wide_residual_ ? b_.to_dtype(x, DType::float32) : x;
    return b_.add(residual, (*mixer_)(y));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  bool wide_residual_;
  CastingRmsNorm norm_;
  std::optional<MambaMixer> mixer_;
};

bool mamba_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c, {"batch", "length", "vocab", "hidden", "intermediate", "state", "rank", "kernel"}) &&
         within(b, c, {"layers"}, 1, kMostLayers) && is_activation(b, c.text("activation"));
}

void build_mamba(ForwardBuilder& b, const Configuration& c) {
  if (!mamba_makes_sense(b, c)) return;
  constexpr double kMostSteps = 400'000;
  const double steps = static_cast<double>(c.integer("layers")) * static_cast<double>(c.integer("length"));
  if (steps > kMostSteps) {
    b.fail(fmt::format("a loop over {} tokens in each of {} layers is too long to derive", c.integer("length"),
                       c.integer("layers")),
           "choose a shorter length");
    return;
  }
  const MambaOptions o = {.hidden = c.integer("hidden"),
                          .inner = c.integer("intermediate"),
                          .state = c.integer("state"),
                          .rank = c.integer("rank"),
                          .kernel = c.integer("kernel"),
                          .eps = c.real("eps"),
                          .bias = c.flag("bias"),
                          .conv_bias = c.flag("conv_bias"),
                          .wide_residual = c.flag("float32_residual"),
                          .activation = c.text("activation")};
  const TensorId tokens = token_input(b, c);
  const Embedding words(b, "backbone.embeddings", c.integer("vocab"), o.hidden);
  std::vector<MambaBlock> blocks;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("backbone.layers.{}", i));
    blocks.emplace_back(b, o);
  }
  const CastingRmsNorm norm(b, "backbone.norm_f", o.hidden, o.eps, RmsWeight::after_cast);
  std::optional<Linear> head;
  if (!c.flag("tied")) head.emplace(b, "lm_head", o.hidden, c.integer("vocab"), false);

  TensorId x = words(tokens);
  for (const MambaBlock& block : blocks) x = block(x);
  x = b.type_as(norm(x), words.weight());
  b.result(b.to_dtype(token_scores(b, x, head, words), DType::float32));
}

}  // namespace

Family mamba_family() {
  return {.name = "mamba",
          .description = "Mamba (transformers), by its loop over the sequence",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"layers", 32, "blocks"},
                                               {"hidden", 768, "width of the model"},
                                               {"intermediate", 1536, "channels of the state spaces"},
                                               {"state", 16, "numbers of a channel's state"},
                                               {"rank", 48, "width that steps are projected from"},
                                               {"kernel", 4, "tokens that the convolution sees"},
                                               {"activation", "silu", "behind the convolution"},
                                               {"eps", 1e-5, "epsilon of the norms"},
                                               {"bias", false, "projections have biases"},
                                               {"conv_bias", true, "the convolution has a bias"},
                                               {"float32_residual", true, "residuals are added in float32"},
                                               {"tied", true, "token scores by the embedding's weights"}},
                                              8, 512, 50280),
          .build = build_mamba};
}

}  // namespace forerun::zoo
