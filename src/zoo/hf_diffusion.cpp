// Configs of diffusion models -> the parameters of ddpm_unet.cpp and dit.cpp.
//
// UNet2DModel: config.json of the diffusers library (0.42), with its defaults. dit: the arguments that the authors' class
// takes, under their names.
#include <algorithm>
#include <cmath>
#include <string>

#include "zoo/architectures.h"

namespace forerun::zoo {
namespace {

// A letter for each kind of block.
void read_blocks(HfConfig& config, Configuration& p, const std::string& key, const std::string& parameter,
                 const std::string& plain, const std::string& attending) {
  if (!config.given(key)) return;
  std::string letters;
  for (const std::string& kind : config.texts(key)) {
    if (kind != plain && kind != attending) config.fail(key, "blocks are " + plain + " or " + attending);
    letters += kind == attending ? 'a' : 'd';
  }
  p.set(parameter, letters);
}

}  // namespace

void read_unet2d(HfConfig& config, Configuration& p) {
  p.set("widths", config.integers("block_out_channels", p.list("widths")));
  p.set("layers", config.integer("layers_per_block", 2));
  read_blocks(config, p, "down_block_types", "down", "DownBlock2D", "AttnDownBlock2D");
  read_blocks(config, p, "up_block_types", "up", "UpBlock2D", "AttnUpBlock2D");
  p.set("head", config.integer("attention_head_dim", 8));
  p.set("groups", config.integer("norm_num_groups", 32));
  p.set("eps", config.real("norm_eps", 1e-5));
  p.set("dropout", config.real("dropout", 0));
  p.set("padding", config.integer("downsample_padding", 1));
  p.set("steps_width", config.integer("time_embedding_dim", 0));
  p.set("wave_shift", config.integer("freq_shift", 0));
  p.set("cosines_first", config.flag("flip_sin_to_cos", true));
  p.set("class_embeddings", config.integer("num_class_embeds", 0));
  p.set("channels", config.integer("in_channels", 3));
  p.set("out_channels", config.integer("out_channels", 3));
  if (config.given("sample_size")) p.set("image", config.integer("sample_size", 32));
  if (config.text("act_fn", "silu") != "swish") config.must_be_text("act_fn", "silu");
  config.must_be_text("time_embedding_type", "positional");
  config.must_be_text("mid_block_type", "UNetMidBlock2D");
  if (config.is_null("mid_block_type")) config.fail("mid_block_type", "a U-Net with a middle can be derived");
  config.must_be_text("downsample_type", "conv");
  config.must_be_text("upsample_type", "conv");
  config.must_be_text("resnet_time_scale_shift", "default");
  config.must_be("add_attention", true, true);
  config.must_be("center_input_sample", false, false);
  config.must_be_zero("attn_norm_num_groups");
  if (config.given("class_embed_type")) config.fail("class_embed_type", "classes by num_class_embeds can be derived");
  config.pass_over({"_class_name", "_diffusers_version", "class_embed_type", "mid_block_scale_factor",
                    "num_train_timesteps", "sample_size"});
}

void read_dit(HfConfig& config, Configuration& p) {
  p.set("image", config.integer("input_size", 32));
  p.set("patch", config.integer("patch_size", 2));
  p.set("channels", config.integer("in_channels", 4));
  p.set("hidden", config.integer("hidden_size", 1152));
  p.set("layers", config.integer("depth", 28));
  p.set("heads", config.integer("num_heads", 16));
  const double ratio = config.real("mlp_ratio", 4);
  constexpr double kWidestRatio = 1024;
  if (!(ratio > 0 && ratio <= kWidestRatio))
    config.fail("mlp_ratio", "the feed-forward layers' width over the model's");
  const double inner = static_cast<double>(std::min(p.integer("hidden"), int64_t{1} << 28)) * ratio;
  p.set("intermediate", static_cast<int64_t>(std::clamp(inner, 0.0, std::ldexp(1.0, 38))));
  p.set("class_dropout", config.real("class_dropout_prob", 0.1));
  p.set("classes", config.integer("num_classes", 1000));
  p.set("learn_sigma", config.flag("learn_sigma", true));
}

}  // namespace forerun::zoo
