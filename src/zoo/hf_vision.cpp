// config.json of vision models -> the parameters of image_encoder.cpp.
//
// Defaults are those of the configuration classes of transformers 5.22.
#include <string>

#include "zoo/architectures.h"

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

}  // namespace forerun::zoo
