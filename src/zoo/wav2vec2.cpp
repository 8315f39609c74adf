// wav2vec 2.0 for speech recognition: convolutions over the waveform, a transformer over their frames, and the loss of
// connectionist temporal classification (CTC) over its labels.
//
// Source: Wav2Vec2ForCTC of transformers 5.22, sdpa attention, waveforms of one length without padding. Spans of frames that
// are masked at random (SpecAugment) are taken not to overlap. Layers that are dropped at random are taken to run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct Wav2Vec2Options {
  int64_t hidden, intermediate, heads;
  double eps, dropout, attention_dropout, activation_dropout;
  bool stable;  // norms before attention and feed-forward, rather than behind them
  std::string activation;
};

// One convolution over the waveform, with what follows it.
class WaveConvolution {
 public:
  enum class Norm { none, group, layer };

  WaveConvolution(ForwardBuilder& b, int64_t in, int64_t out, int64_t kernel, int64_t stride, bool bias, Norm norm,
                  std::string activation)
      : b_(b), path_(b.path_of("")), stride_(stride), norm_kind_(norm), activation_(std::move(activation)) {
    weight_ = b.parameter("conv.weight", {out, in, kernel});
    if (bias) bias_ = b.parameter("conv.bias", {out});
    if (norm == Norm::layer) layer_norm_.emplace(b, "layer_norm", out);
    if (norm != Norm::group) return;
    norm_weight_ = b.parameter("layer_norm.weight", {out});
    norm_bias_ = b.parameter("layer_norm.bias", {out});
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    {
      const Scope conv(b_, "conv");
      x = b_.conv(x, weight_, bias_, {.stride = {stride_}, .padding = {0}});
    }
    if (norm_kind_ == Norm::layer) x = b_.transpose((*layer_norm_)(b_.transpose(x, -2, -1)), -2, -1);
    if (norm_kind_ == Norm::group) {
      const Scope norm(b_, "layer_norm");
      x = b_.group_norm(x, norm_weight_, norm_bias_, b_.extent(x, 1));
    }
    const Scope activation(b_, "activation");
    return activate(b_, activation_, x);
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t stride_;
  Norm norm_kind_;
  std::string activation_;
  TensorId weight_;
  std::optional<TensorId> bias_;
  std::optional<LayerNorm> layer_norm_;
  TensorId norm_weight_, norm_bias_;
};

// Positions by a grouped convolution over neighbouring frames, whose weight is a direction and a length.
class PositionConvolution {
 public:
  PositionConvolution(ForwardBuilder& b, const Configuration& c)
      : b_(b),
        path_(b.path_of("")),
        kernel_(c.integer("position_kernel")),
        groups_(c.integer("position_groups")),
        activation_(c.text("conv_activation")) {
    const int64_t hidden = c.integer("hidden");
    bias_ = b.parameter("conv.bias", {hidden});
    length_ = b.parameter("conv.parametrizations.weight.original0", {1, 1, kernel_});
    direction_ = b.parameter("conv.parametrizations.weight.original1", {hidden, hidden / groups_, kernel_});
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.transpose(x, 1, 2);
    {
      const Scope conv(b_, "conv");
      TensorId weight;
      {
        const Scope parametrization(b_, "parametrizations.weight");
        weight = b_.opaque("aten._weight_norm_interface.default", {direction_, length_},
                           {{b_.shape(direction_), DType::float32}, {b_.shape(length_), DType::float32}},
                           {{"dim", int64_t{2}}})
                     .front();
      }
      x = b_.conv(x, weight, bias_, {.stride = {1}, .padding = {kernel_ / 2}, .groups = groups_});
    }
    if (kernel_ % 2 == 0) {
      const Scope padding(b_, "padding");
      x = b_.slice(x, 2, 0, -1);
    }
    {
      const Scope activation(b_, "activation");
      x = activate(b_, activation_, x);
    }
    return b_.transpose(x, 1, 2);
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t kernel_, groups_;
  std::string activation_;
  TensorId bias_, length_, direction_;
};

class Wav2Vec2Layer {
 public:
  Wav2Vec2Layer(ForwardBuilder& b, const Wav2Vec2Options& o)
      : b_(b),
        path_(b.path_of("")),
        o_(o),
        key_(b, "attention.k_proj", o.hidden, o.hidden),
        value_(b, "attention.v_proj", o.hidden, o.hidden),
        query_(b, "attention.q_proj", o.hidden, o.hidden),
        out_(b, "attention.out_proj", o.hidden, o.hidden),
        norm_(b, "layer_norm", o.hidden, o.eps),
        up_(b, "feed_forward.intermediate_dense", o.hidden, o.intermediate),
        down_(b, "feed_forward.output_dense", o.intermediate, o.hidden),
        last_norm_(b, "final_layer_norm", o.hidden, o.eps) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.add(x, Dropout(b_, "dropout", o_.dropout)(attend(o_.stable ? norm_(x) : x)));
    if (o_.stable) return b_.add(x, feed_forward(last_norm_(x)));
    x = norm_(x);
    return last_norm_(b_.add(x, feed_forward(x)));
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x) const {
    const Scope scope(b_, "attention");
    const int64_t head = o_.hidden / o_.heads;
    const TensorId query = split_heads(b_, query_(x), head);
    const TensorId key = split_heads(b_, key_(x), head);
    const TensorId value = split_heads(b_, value_(x), head);
    const AttentionOptions options = {
        .mask = {}, .dropout = o_.attention_dropout, .scale = std::pow(static_cast<double>(head), -0.5)};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    const Scope scope(b_, "feed_forward");
    x = up_(x);
    {
      const Scope activation(b_, "intermediate_act_fn");
      x = activate(b_, o_.activation, x);
    }
    x = Dropout(b_, "intermediate_dropout", o_.activation_dropout)(x);
    return Dropout(b_, "output_dropout", o_.dropout)(down_(x));
  }

  ForwardBuilder& b_;
  std::string path_;
  Wav2Vec2Options o_;
  Linear key_, value_, query_, out_;
  LayerNorm norm_;
  Linear up_, down_;
  LayerNorm last_norm_;
};

bool wav2vec2_makes_sense(ForwardBuilder& b, const Configuration& c) {
  constexpr size_t kMostConvolutions = 64;
  if (!within(b, c,
              {"batch", "samples", "labels", "vocab", "hidden", "intermediate", "heads", "position_kernel",
               "position_groups", "mask_length"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !within(b, c, {"least_masks"}, 0) ||
      !heads_divide(b, c.integer("heads"), c.integer("hidden")) || !is_activation(b, c.text("activation")) ||
      !is_activation(b, c.text("conv_activation"))) {
    return false;
  }
  for (const char* name : {"dropout", "attention_dropout", "activation_dropout", "projection_dropout", "final_dropout",
                           "mask_probability", "layerdrop"}) {
    if (!is_dropout(b, c.real(name))) return false;
  }
  const size_t count = c.list("conv_widths").size();
  for (const char* name : {"conv_widths", "conv_kernels", "conv_strides"}) {
    const auto& list = c.list(name);
    if (list.size() == count && count <= kMostConvolutions &&
        std::all_of(list.begin(), list.end(), [](int64_t v) { return v >= 1 && v <= kLargestExtent; })) {
      continue;
    }
    b.fail(fmt::format("{} convolutions, of which {} names {}", count, name, list.size()),
           "widths, kernels and strides must be as many, each at least 1");
    return false;
  }
  if (c.integer("hidden") % c.integer("position_groups") != 0) {
    b.fail(fmt::format("{} groups do not divide a width of {}", c.integer("position_groups"), c.integer("hidden")),
           "choose groups that divide the width");
    return false;
  }
  return true;
}

// Frames of the encoder; 0 where the waveform is too short.
int64_t frames_of(const Configuration& c) {
  int64_t length = c.integer("samples");
  for (size_t i = 0; i < c.list("conv_kernels").size(); ++i) {
    length = (length - c.list("conv_kernels")[i]) / c.list("conv_strides")[i] + 1;
    if (length < 1) return 0;
  }
  return length;
}

std::vector<WaveConvolution> convolutions_of(ForwardBuilder& b, const Configuration& c) {
  using Norm = WaveConvolution::Norm;
  const bool layer_norms = c.flag("conv_layer_norms");
  std::vector<WaveConvolution> list;
  int64_t in = 1;
  for (size_t i = 0; i < c.list("conv_widths").size(); ++i) {
    const Scope scope(b, fmt::format("conv_layers.{}", i));
    const Norm norm = layer_norms ? Norm::layer : i == 0 ? Norm::group : Norm::none;
    list.emplace_back(b, in, c.list("conv_widths")[i], c.list("conv_kernels")[i], c.list("conv_strides")[i],
                      c.flag("conv_bias"), norm, c.text("conv_activation"));
    in = c.list("conv_widths")[i];
  }
  return list;
}

// Puts `embedding` in the place of some spans of frames, chosen on the host.
TensorId with_frames_masked(ForwardBuilder& b, const Configuration& c, TensorId x, TensorId embedding) {
  const Shape frames = {b.extent(x, 0), b.extent(x, 1)};
  const TensorId drawn = b.create("aten.lift_fresh.default", frames, DType::boolean);
  const TensorId mask = b.opaque("aten._to_copy.default", {drawn}, {{frames, DType::boolean}}).front();
  const TensorId typed = b.type_as(embedding, x);
  const auto length = static_cast<double>(frames[1]);
  const auto span = static_cast<double>(c.integer("mask_length"));
  const double spans =
      std::max(c.real("mask_probability") * length / span, static_cast<double>(c.integer("least_masks")));
  const auto count = static_cast<int64_t>(std::min(spans * span, length)) * frames[0];
  return b.opaque("forerun.masked_put_.default", {x, mask, typed}, {{b.shape(x), b.dtype(x)}}, {{"count", count}})
      .front();
}

// Labels that are too large are an error that the host looks for.
void check_labels(ForwardBuilder& b, TensorId labels) {
  const TensorId largest = b.opaque("aten.max.default", {labels}, {{Shape{}, DType::int64}}).front();
  const TensorId beyond = b.unary("aten.ge.Scalar", largest, {{"other", int64_t{0}}});
  b.opaque("aten._local_scalar_dense.default", {beyond}, {});
}

// How many frames each waveform gives, as the library counts them: on the GPU.
TensorId frame_counts(ForwardBuilder& b, const Configuration& c, TensorId ones) {
  TensorId count = b.sum(ones, {-1}, false);
  for (size_t i = 0; i < c.list("conv_kernels").size(); ++i) {
    count = b.unary("aten.sub.Tensor", count, {{"other", c.list("conv_kernels")[i]}});
    count = b.unary("aten.div.Tensor_mode", count, {{"other", c.list("conv_strides")[i]}});
    count = b.unary("aten.add.Tensor", count, {{"other", int64_t{1}}});
  }
  return count;
}

// Sets the model's result: CTC of the scores [batch, frames, vocab] against labels [batch, count].
void ctc_result(ForwardBuilder& b, const Configuration& c, TensorId scores, TensorId labels, TensorId frames) {
  const int64_t batch = b.extent(labels, 0);
  const int64_t count = b.extent(labels, 1);
  const TensorId given = b.unary("aten.ne.Scalar", labels, {{"other", int64_t{-100}}});
  const TensorId written = b.unary("aten.ne.Scalar", labels, {{"other", int64_t{0}}});
  const TensorId taken = b.binary("aten.bitwise_and.Tensor", given, written);
  const TensorId lengths =
      b.opaque("aten.sum.dim_IntList", {taken}, {{Shape{batch}, DType::int64}}, {{"dim", Shape{-1}}}).front();
  const TensorId flat =
      b.opaque("aten.masked_select.default", {labels, taken}, {{Shape{batch * count}, DType::int64}}).front();
  TensorId x = b.log_softmax(b.to_dtype(scores, DType::float32), -1);
  x = b.transpose(x, 0, 1);
  const Shape alpha = {batch, b.extent(x, 0), 2 * count + 1};
  TensorId losses =
      b.opaque("aten._ctc_loss.Tensor", {x, flat, frames, lengths},
               {{Shape{batch}, DType::float32}, {alpha, DType::float32}}, {{"zero_infinity", c.flag("zero_infinity")}})
          .front();
  if (c.flag("zero_infinity")) {
    const TensorId infinite = b.unary("aten.eq.Scalar", losses, {{"other", 0.0}});
    losses = b.where(infinite, b.create("aten.zeros.default", {}, DType::float32), losses);
  }
  if (!c.flag("mean_loss")) return b.result(b.sum(losses, {}, false));
  const TensorId least_one = b.unary("aten.clamp_min.default", lengths, {{"min", int64_t{1}}});
  b.result(b.mean(b.binary("aten.div.Tensor", losses, least_one), {}, false));
}

void build_wav2vec2(ForwardBuilder& b, const Configuration& c) {
  if (!wav2vec2_makes_sense(b, c)) return;
  const int64_t frames = frames_of(c);
  if (frames < c.integer("labels")) {
    b.fail(fmt::format("{} samples give {} frames for {} labels", c.integer("samples"), frames, c.integer("labels")),
           "give longer waveforms or fewer labels");
    return;
  }
  const Wav2Vec2Options o = {.hidden = c.integer("hidden"),
                             .intermediate = c.integer("intermediate"),
                             .heads = c.integer("heads"),
                             .eps = c.real("eps"),
                             .dropout = c.real("dropout"),
                             .attention_dropout = c.real("attention_dropout"),
                             .activation_dropout = c.real("activation_dropout"),
                             .stable = c.flag("stable"),
                             .activation = c.text("activation")};
  const TensorId waveform = b.input("waveform", {c.integer("batch"), c.integer("samples")});
  const TensorId labels = b.input("labels", {c.integer("batch"), c.integer("labels")}, DType::int64);
  std::optional<Scope> part(std::in_place, b, "wav2vec2");
  std::optional<TensorId> masked;
  if (c.flag("mask_embedding")) masked = b.parameter("masked_spec_embed", {o.hidden});
  std::vector<WaveConvolution> convolutions;
  {
    const Scope scope(b, "feature_extractor");
    convolutions = convolutions_of(b, c);
  }
  const int64_t width = c.list("conv_widths").back();
  const LayerNorm feature_norm(b, "feature_projection.layer_norm", width, o.eps);
  const Linear projection(b, "feature_projection.projection", width, o.hidden);
  std::optional<PositionConvolution> positions;
  {
    const Scope scope(b, "encoder.pos_conv_embed");
    positions.emplace(b, c);
  }
  const LayerNorm norm(b, "encoder.layer_norm", o.hidden, o.eps);
  std::vector<Wav2Vec2Layer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("encoder.layers.{}", i));
    layers.emplace_back(b, o);
  }
  part.reset();
  const Linear head(b, "lm_head", o.hidden, c.integer("vocab"));

  check_labels(b, labels);
  part.emplace(b, "wav2vec2");
  TensorId x = b.unsqueeze(waveform, 1);
  x = b.opaque("forerun.require_gradient.default", {x}, {{b.shape(x), DType::float32}}).front();
  for (const WaveConvolution& convolution : convolutions) x = convolution(x);
  x = feature_norm(b.transpose(x, 1, 2));
  x = Dropout(b, "feature_projection.dropout", c.real("projection_dropout"))(projection(x));
  if (masked && c.real("mask_probability") > 0) x = with_frames_masked(b, c, x, *masked);
  {
    const Scope encoder(b, "encoder");
    x = b.add(x, (*positions)(x));
    if (!o.stable) x = norm(x);
    x = Dropout(b, "dropout", o.dropout)(x);
    for (const Wav2Vec2Layer& layer : layers) {
      draw_for_layer_drop(b);
      x = layer(x);
    }
    if (o.stable) x = norm(x);
  }
  part.reset();
  const TensorId scores = head(Dropout(b, "dropout", c.real("final_dropout"))(x));
  const TensorId ones = b.opaque("aten.ones_like.default", {waveform}, {{b.shape(waveform), DType::int64}}).front();
  ctc_result(b, c, scores, labels, frame_counts(b, c, ones));
  b.opaque("forerun.hold.default", {x, scores, ones}, {});
}

}  // namespace

Family wav2vec2_family() {
  return {.name = "wav2vec2",
          .description = "wav2vec 2.0 for speech recognition (transformers), CTC",
          .input = InputKind::flat,
          .parameters = {{"layers", 12, "encoder layers"},
                         {"heads", 12, "attention heads"},
                         {"hidden", 768, "width of the model"},
                         {"intermediate", 3072, "width of the feed-forward layers"},
                         {"activation", "gelu", "activation of the feed-forward layers"},
                         {"stable", false, "norms before attention and feed-forward"},
                         {"eps", 1e-5, "epsilon of the norms"},
                         {"dropout", 0.1, "dropout outside attention"},
                         {"attention_dropout", 0.1, "dropout in attention"},
                         {"activation_dropout", 0.1, "dropout behind activations"},
                         {"projection_dropout", 0.0, "dropout behind the projection of frames"},
                         {"final_dropout", 0.1, "dropout before the scores"},
                         {"layerdrop", 0.0, "chance of a layer to be left out; all of them are taken to run"},
                         {"conv_widths", std::vector<int64_t>{512, 512, 512, 512, 512, 512, 512},
                          "of the waveform's convolutions"},
                         {"conv_kernels", std::vector<int64_t>{10, 3, 3, 3, 3, 2, 2}, "of the waveform's convolutions"},
                         {"conv_strides", std::vector<int64_t>{5, 2, 2, 2, 2, 2, 2}, "of the waveform's convolutions"},
                         {"conv_bias", false, "the waveform's convolutions have biases"},
                         {"conv_layer_norms", false,
                          "a layer norm behind each of them; else a group norm behind the first"},
                         {"conv_activation", "gelu", "behind each of them"},
                         {"position_kernel", 128, "frames that a position is told by"},
                         {"position_groups", 16, "groups of that convolution"},
                         {"mask_embedding", true, "a vector stands for masked frames"},
                         {"mask_probability", 0.05, "share of frames that begin a masked span"},
                         {"mask_length", 10, "frames of a masked span"},
                         {"least_masks", 2, "spans that are masked at least"},
                         {"mean_loss", false, "the loss is a mean over labels and waveforms, not a sum"},
                         {"zero_infinity", false, "losses that are infinite count as 0"},
                         {"vocab", 32, "labels there are"},
                         {"batch", 8, "waveforms per iteration"},
                         {"samples", 160000, "samples of a waveform: 16,000 a second"},
                         {"labels", 100, "labels of a waveform"}},
          .build = build_wav2vec2};
}

}  // namespace forerun::zoo
