// config.json of vision models -> the parameters of image_encoder.cpp, clip.cpp, segformer.cpp, swin_encoder.cpp and sam_encoder.cpp.
//
// Defaults are those of the configuration classes of transformers 5.22.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "zoo/architectures.h"
#include "zoo/attention_layers.h"

namespace forerun::zoo {
namespace {

// ViT's keys, which DINOv2 has kept.
void read_vit_like(HfConfig& config, Configuration& p, double eps) {
  p.set("hidden", config.integer("hidden_size", 768));
  p.set("layers", config.integer("num_hidden_layers", 12));
  p.set("heads", config.integer("num_attention_heads", 12));
  p.set("activation", config.text("hidden_act", "gelu"));
  p.set("dropout", config.real("hidden_dropout_prob", 0));
  p.set("attention_dropout", config.real("attention_probs_dropout_prob", 0));
  p.set("eps", config.real("layer_norm_eps", eps));
  p.set("channels", config.integer("num_channels", 3));
  p.set("qkv_bias", config.flag("qkv_bias", true));
  p.set("classes", config.label_count());
}

void set_image(Configuration& p, int64_t image) {
  p.set("image", image);
  p.set("trained_image", image);
}

// A part of a config that may be missing: its defaults then count.
HfConfig part_of(HfConfig& config, const std::string& key) {
  if (config.given(key + "_dict")) config.fail(key + "_dict", fmt::format("{} must say it", key));
  config.pass_over({(key + "_dict").c_str()});
  HfConfig part = config.object(key).value_or(*HfConfig::parse("{}", key));
  part.must_be("add_cross_attention", false, false);
  part.must_be_zero("chunk_size_feed_forward");
  part.pass_over({"cross_attention_hidden_size", "dropout", "gradient_checkpointing", "is_decoder", "output_attentions",
                  "output_hidden_states", "projection_dim", "sep_token_id", "tie_encoder_decoder",
                  "tie_word_embeddings"});
  return part;
}

struct ClipDefaults {
  int64_t hidden, intermediate, heads;
};

// What both sides of CLIP have, under names that begin with `prefix`.
void read_clip_side(HfConfig& part, Configuration& p, const std::string& prefix, const ClipDefaults& d) {
  p.set(prefix + "hidden", part.integer("hidden_size", d.hidden));
  p.set(prefix + "intermediate", part.integer("intermediate_size", d.intermediate));
  p.set(prefix + "layers", part.integer("num_hidden_layers", 12));
  p.set(prefix + "heads", part.integer("num_attention_heads", d.heads));
  p.set(prefix + "activation", part.text("hidden_act", "quick_gelu"));
  p.set(prefix + "eps", part.real("layer_norm_eps", 1e-5));
  p.set(prefix + "attention_dropout", part.real("attention_dropout", 0));
}

}  // namespace

void read_vit(HfConfig& config, Configuration& p) {
  read_vit_like(config, p, 1e-12);
  p.set("intermediate", config.integer("intermediate_size", 3072));
  p.set("patch", config.integer("patch_size", 16));
  set_image(p, config.integer("image_size", 224));
  config.pass_over({"encoder_stride", "pooler_act", "pooler_output_size"});
}

void read_dinov2(HfConfig& config, Configuration& p) {
  read_vit_like(config, p, 1e-6);
  p.set("dino", true);
  p.set("intermediate", p.integer("hidden") * config.integer("mlp_ratio", 4));
  p.set("patch", config.integer("patch_size", 14));
  p.set("mask_token", config.flag("use_mask_token", true));
  set_image(p, config.integer("image_size", 224));
  config.must_be_zero("drop_path_rate");
  config.must_be("use_swiglu_ffn", false, false);
  config.pass_over(
      {"layerscale_value", "apply_layernorm", "out_features", "out_indices", "reshape_hidden_states", "stage_names"});
}

void read_segformer(HfConfig& config, Configuration& p) {
  p.set("depths", config.integers("depths", {2, 2, 2, 2}));
  p.set("hidden", config.integers("hidden_sizes", {32, 64, 160, 256}));
  p.set("heads", config.integers("num_attention_heads", {1, 2, 5, 8}));
  p.set("patch", config.integers("patch_sizes", {7, 3, 3, 3}));
  p.set("stride", config.integers("strides", {4, 2, 2, 2}));
  p.set("reduction", config.integers("sr_ratios", {8, 4, 2, 1}));
  p.set("ratio", config.integers("mlp_ratios", {4, 4, 4, 4}));
  p.set("channels", config.integer("num_channels", 3));
  p.set("activation", config.text("hidden_act", "gelu"));
  p.set("dropout", config.real("hidden_dropout_prob", 0));
  p.set("attention_dropout", config.real("attention_probs_dropout_prob", 0));
  p.set("drop_path", config.real("drop_path_rate", 0.1));
  p.set("classes", config.label_count());
  p.set("image", config.integer("image_size", 224));
  const auto stages = static_cast<int64_t>(std::get<std::vector<int64_t>>(p.values().at("depths")).size());
  if (config.integer("num_encoder_blocks", 4) != stages) {
    config.fail("num_encoder_blocks", "it must be as many as depths names");
  }
  config.must_be("reshape_last_stage", true, true);
  config.pass_over({"classifier_dropout_prob", "decoder_hidden_size", "downsampling_rates", "layer_norm_eps",
                    "semantic_loss_ignore_index"});
}

void read_swin(HfConfig& config, Configuration& p) {
  p.set("patch", config.integer("patch_size", 4));
  p.set("depths", config.integers("depths", {2, 2, 6, 2}));
  p.set("heads", config.integers("num_heads", {3, 6, 12, 24}));
  p.set("hidden", config.integer("embed_dim", 96));
  p.set("window", config.integer("window_size", 7));
  p.set("ratio", config.real("mlp_ratio", 4));
  p.set("eps", config.real("layer_norm_eps", 1e-5));
  p.set("activation", config.text("hidden_act", "gelu"));
  p.set("qkv_bias", config.flag("qkv_bias", true));
  p.set("attention_dropout", config.real("attention_probs_dropout_prob", 0));
  p.set("drop_path", config.real("drop_path_rate", 0.1));
  p.set("channels", config.integer("num_channels", 3));
  p.set("image", config.integer("image_size", 224));
  p.set("classes", config.label_count());
  config.must_be_zero("hidden_dropout_prob");
  config.must_be("use_absolute_embeddings", false, false);
  config.pass_over({"_out_features", "_out_indices", "encoder_stride", "hidden_size", "num_layers", "out_features",
                    "out_indices", "path_norm", "stage_names"});
}

void read_clip(HfConfig& config, Configuration& p) {
  HfConfig vision = part_of(config, "vision_config");
  read_clip_side(vision, p, "", {768, 3072, 12});
  p.set("patch", vision.integer("patch_size", 32));
  p.set("channels", vision.integer("num_channels", 3));
  set_image(p, vision.integer("image_size", 224));
  HfConfig text = part_of(config, "text_config");
  read_clip_side(text, p, "text_", {512, 2048, 8});
  p.set("vocab", text.integer("vocab_size", 49408));
  p.set("positions", text.integer("max_position_embeddings", 77));
  p.set("text_length", p.integer("positions"));
  p.set("largest_ends", text.integer("eos_token_id", 49407) == 2);  // what the first configs said, wrongly
  p.set("projection", config.integer("projection_dim", 512));
  config.pass_over({"logit_scale_init_value", "tie_word_embeddings"});
}

void read_sam_vision(HfConfig& config, Configuration& p) {
  p.set("hidden", config.integer("hidden_size", 768));
  p.set("layers", config.integer("num_hidden_layers", 12));
  p.set("heads", config.integer("num_attention_heads", 12));
  p.set("patch", config.integer("patch_size", 16));
  p.set("channels", config.integer("num_channels", 3));
  p.set("out_channels", config.integer("output_channels", 256));
  p.set("window", config.integer("window_size", 14));
  p.set("eps", config.real("layer_norm_eps", 1e-6));
  p.set("activation", config.text("hidden_act", "gelu"));
  p.set("qkv_bias", config.flag("qkv_bias", true));
  p.set("absolute_positions", config.flag("use_abs_pos", true));
  p.set("relative_positions", config.flag("use_rel_pos", true));
  set_image(p, config.integer("image_size", 1024));
  constexpr double kWidest = 1 << 28;
  const double inner = static_cast<double>(p.integer("hidden")) * config.real("mlp_ratio", 4);
  const auto usual = static_cast<int64_t>(std::clamp(inner, 0.0, kWidest));
  p.set("intermediate", config.given("mlp_dim") ? config.integer("mlp_dim", usual) : usual);
  std::string pattern(static_cast<size_t>(std::clamp<int64_t>(p.integer("layers"), 0, kMostLayers)), 'w');
  for (const int64_t layer : config.integers("global_attn_indexes", {2, 5, 8, 11})) {
    if (layer >= 0 && layer < static_cast<int64_t>(pattern.size())) pattern[static_cast<size_t>(layer)] = 'g';
  }
  p.set("pattern", pattern);
  config.pass_over({"attention_dropout", "mlp_dim", "num_pos_feats", "scale"});  // sdpa attention drops nothing
}

void read_sam(HfConfig& config, Configuration& p) {
  HfConfig vision = part_of(config, "vision_config");
  read_sam_vision(vision, p);
  config.pass_over({"mask_decoder_config", "prompt_encoder_config", "tie_word_embeddings"});
}

}  // namespace forerun::zoo
