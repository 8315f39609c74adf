// Configs of diffusion models -> the parameters of ddpm_unet.cpp and dit.cpp.
//
// UNet2DModel, UNet2DConditionModel: config.json of the diffusers library (0.42), with its defaults. dit: the arguments that the authors' class
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

// What both classes have.
void read_unet(HfConfig& config, Configuration& p) {
  p.set("layers", config.integer("layers_per_block", 2));
  p.set("groups", config.integer("norm_num_groups", 32));
  p.set("eps", config.real("norm_eps", 1e-5));
  p.set("dropout", config.real("dropout", 0));
  p.set("padding", config.integer("downsample_padding", 1));
  p.set("steps_width", config.integer("time_embedding_dim", 0));
  p.set("wave_shift", config.integer("freq_shift", 0));
  p.set("cosines_first", config.flag("flip_sin_to_cos", true));
  p.set("class_embeddings", config.integer("num_class_embeds", 0));
  if (config.given("sample_size")) p.set("image", config.integer("sample_size", 32));
  if (config.text("act_fn", "silu") != "swish") config.must_be_text("act_fn", "silu");
  config.must_be_text("time_embedding_type", "positional");
  if (config.is_null("mid_block_type")) config.fail("mid_block_type", "a U-Net with a middle can be derived");
  config.must_be_text("resnet_time_scale_shift", "default");
  config.must_be("center_input_sample", false, false);
  if (config.given("class_embed_type")) config.fail("class_embed_type", "classes by num_class_embeds can be derived");
  config.pass_over({"_class_name", "_diffusers_version", "class_embed_type", "mid_block_scale_factor", "sample_size"});
}

// A key that is null in what can be derived.
void must_be_null(HfConfig& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (config.given(key)) config.fail(key, "U-Nets without it can be derived");
  }
  config.pass_over(keys);
}

}  // namespace

void read_unet2d(HfConfig& config, Configuration& p) {
  read_unet(config, p);
  p.set("widths", config.integers("block_out_channels", p.list("widths")));
  read_blocks(config, p, "down_block_types", "down", "DownBlock2D", "AttnDownBlock2D");
  read_blocks(config, p, "up_block_types", "up", "UpBlock2D", "AttnUpBlock2D");
  p.set("head", config.integer("attention_head_dim", 8));
  p.set("channels", config.integer("in_channels", 3));
  p.set("out_channels", config.integer("out_channels", 3));
  config.must_be_text("mid_block_type", "UNetMidBlock2D");
  config.must_be_text("downsample_type", "conv");
  config.must_be_text("upsample_type", "conv");
  config.must_be("add_attention", true, true);
  config.must_be_zero("attn_norm_num_groups");
  config.pass_over({"num_train_timesteps"});
}

void read_unet2d_condition(HfConfig& config, Configuration& p) {
  read_unet(config, p);
  p.set("widths", config.integers("block_out_channels", {320, 640, 1280, 1280}));
  p.set("down", std::string("aaad"));
  p.set("up", std::string("daaa"));
  read_blocks(config, p, "down_block_types", "down", "DownBlock2D", "CrossAttnDownBlock2D");
  read_blocks(config, p, "up_block_types", "up", "UpBlock2D", "CrossAttnUpBlock2D");
  p.set("channels", config.integer("in_channels", 4));
  p.set("out_channels", config.integer("out_channels", 4));
  p.set("text_width", config.integer("cross_attention_dim", 1280));
  // What the library calls the width of a head is the number of heads.
  const bool by_level = config.is_list("attention_head_dim");
  p.set("heads", by_level ? config.integers("attention_head_dim", {})
                          : std::vector<int64_t>{config.integer("attention_head_dim", 8)});
  p.set("linear_projection", config.flag("use_linear_projection", false));
  config.must_be_text("mid_block_type", "UNetMidBlock2DCrossAttn");
  config.must_be_text("attention_type", "default");
  for (const char* key :
       {"only_cross_attention", "dual_cross_attention", "resnet_skip_time_act", "class_embeddings_concat"}) {
    config.must_be(key, false, false);
  }
  must_be_null(config, {"num_attention_heads", "addition_embed_type", "encoder_hid_dim", "encoder_hid_dim_type",
                        "addition_time_embed_dim", "time_embedding_act_fn", "timestep_post_act", "time_cond_proj_dim",
                        "projection_class_embeddings_input_dim", "mid_block_only_cross_attention",
                        "cross_attention_norm", "reverse_transformer_layers_per_block", "num_class_embeds"});
  if (config.is_list("transformer_layers_per_block") || config.integer("transformer_layers_per_block", 1) != 1) {
    config.fail("transformer_layers_per_block", "one block a level can be derived");
  }
  for (const char* key : {"conv_in_kernel", "conv_out_kernel"}) {
    if (config.integer(key, 3) != 3) config.fail(key, "kernels of 3 can be derived");
  }
  if (config.real("resnet_out_scale_factor", 1) != 1) config.fail("resnet_out_scale_factor", "1 can be derived");
  // Fused attention does not read it.
  config.pass_over({"upcast_attention", "addition_embed_type_num_heads"});
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
