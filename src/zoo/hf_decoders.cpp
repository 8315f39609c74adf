// config.json of the decoders of the Llama line -> the switches of decoder.cpp.
//
// Defaults are those of the configuration classes of transformers 5.22.
#include <algorithm>
#include <array>
#include <string>

#include "zoo/architectures.h"
#include "zoo/attention_layers.h"

namespace forerun::zoo {
namespace {

struct DecoderDefaults {
  int64_t vocab = 32000;
  int64_t hidden = 4096;
  int64_t intermediate = 11008;
  int64_t layers = 32;
  int64_t heads = 32;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head = 0;      // 0: hidden over heads
  int64_t positions = 2048;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  double eps = 1e-6;
  bool tied = false;
};

constexpr int64_t kUsualLength = 2048;  // where the model takes so many

// The sizes that every one of them has.
void read_sizes(HfConfig& config, Configuration& p, const DecoderDefaults& d) {
  const int64_t heads = config.integer("num_attention_heads", d.heads);
  p.set("vocab", config.integer("vocab_size", d.vocab));
  p.set("hidden", config.integer("hidden_size", d.hidden));
  p.set("intermediate", config.integer("intermediate_size", d.intermediate));
  p.set("layers", config.integer("num_hidden_layers", d.layers));
  p.set("heads", heads);
  const int64_t kv_heads = config.integer("num_key_value_heads", d.kv_heads);
  p.set("kv_heads", kv_heads > 0 ? kv_heads : heads);
  p.set("head", config.integer("head_dim", d.head));
  p.set("activation", config.text(d.activation_key, d.activation));
  p.set("eps", config.real("rms_norm_eps", d.eps));
  p.set("tied", config.flag("tie_word_embeddings", d.tied));
  p.set("attention_dropout", config.real("attention_dropout", 0));
  p.set("length", std::min(config.integer("max_position_embeddings", d.positions), kUsualLength));
}

// Scaling that is fixed before training changes values of a table alone. `share`: the part of heads with positions;
// `two_tables`: whether one of two tables is chosen by the length of the sequence, where that can be derived.
void check_rope(HfConfig rope, double* share, bool* two_tables = nullptr) {
  static constexpr std::array kFixed = {"default", "linear", "llama3", "yarn"};
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  if (two_tables != nullptr && (type == "longrope" || type == "su")) {
    *two_tables = true;
  } else if (std::find(kFixed.begin(), kFixed.end(), type) == kFixed.end()) {
    rope.fail(rope.given("rope_type") ? "rope_type" : "type",
              "default, linear, llama3 and yarn can be derived: others choose by the length of the sequence");
  }
  *share = rope.real("partial_rotary_factor", *share);
  rope.pass_over({"rope_theta", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
                  "attention_factor", "long_factor", "short_factor", "long_mscale", "short_mscale", "beta_fast",
                  "beta_slow", "mscale", "mscale_all_dim", "truncate"});
}

// A window in all layers, where the config has one.
void read_window(HfConfig& config, Configuration& p, int64_t otherwise) {
  const int64_t window = config.integer("sliding_window", otherwise);
  if (window == 0) return;
  p.set("window", window);
  p.set("pattern", std::string("s"));
}

// Qwen: layers from max_window_layers on have a window where use_sliding_window is set.
void read_qwen_windows(HfConfig& config, Configuration& p, int64_t window_layers) {
  const bool windows = config.flag("use_sliding_window", false);
  const int64_t window = config.integer("sliding_window", 4096);
  const int64_t first = config.integer("max_window_layers", window_layers);
  std::string pattern = read_layer_types(config, p.integer("layers"));
  if (pattern.empty() && windows) {
    const int64_t layers = std::min(p.integer("layers"), kMostLayers);
    for (int64_t i = 0; i < layers; ++i) pattern += i >= first ? 's' : 'f';
  }
  if (pattern.find('s') == std::string::npos) return;
  p.set("window", window);
  p.set("pattern", pattern);
}

// What Gemma's generations share.
void read_gemma_like(HfConfig& config, Configuration& p, const DecoderDefaults& defaults) {
  read_sizes(config, p, defaults);
  const bool bias = config.flag("attention_bias", false);
  p.set("qkv_bias", bias);
  p.set("out_bias", bias);
  p.set("norm_weight", std::string("one_plus"));
  p.set("scaled_embedding", true);
  config.must_be("use_bidirectional_attention", false, false);
}

// Gemma 2 and 3: windows in most layers, norms on both sides, a scale of their own.
void read_gemma_windows(HfConfig& config, Configuration& p, int64_t full_every) {
  p.set("norm_side", std::string("both"));
  p.set("query_scalar", config.real("query_pre_attn_scalar", 256));
  p.set("window", config.integer("sliding_window", 4096));
  std::string pattern = read_layer_types(config, p.integer("layers"));
  if (pattern.empty()) {
    for (int64_t i = 1; i <= full_every; ++i) pattern += i < full_every ? 's' : 'f';
  }
  p.set("pattern", pattern);
  p.set("softcap", config.real("final_logit_softcapping", p.real("softcap")));
}

void read_experts(HfConfig& config, Configuration& p, const char* key, int64_t experts, int64_t per_token) {
  p.set("experts", config.integer(key, experts));
  p.set("experts_per_token", config.integer("num_experts_per_tok", per_token));
  config.must_be("output_router_logits", false, false);
  config.pass_over({"router_aux_loss_coef"});
}

// Qwen's keys for layers without experts.
void experts_in_all_layers(HfConfig& config) {
  if (config.integer("decoder_sparse_step", 1) != 1) config.fail("decoder_sparse_step", "1 is what can be derived");
  if (config.has_items("mlp_only_layers")) config.fail("mlp_only_layers", "experts in all layers can be derived");
}

struct DeepseekDefaults {
  int64_t expert_width, shared_experts, dense_layers;
};

// What DeepSeek's generations share; the sizes are read already.
void read_deepseek_like(HfConfig& config, Configuration& p, const DeepseekDefaults& d) {
  const int64_t width = config.integer("moe_intermediate_size", d.expert_width);
  p.set("dense_intermediate", p.integer("intermediate"));
  p.set("dense_layers", config.integer("first_k_dense_replace", d.dense_layers));
  p.set("intermediate", width);
  p.set("shared_expert", width * config.integer("n_shared_experts", d.shared_experts));
  p.set("router_last", true);
  p.set("query_rank", config.integer("q_lora_rank", 1536));
  p.set("key_rank", config.integer("kv_lora_rank", 512));
  p.set("plain_head", config.integer("qk_nope_head_dim", 128));
  p.set("head", config.integer("qk_rope_head_dim", 64));
  p.set("value_head", config.integer("v_head_dim", 128));
  p.set("qkv_bias", config.flag("attention_bias", false));
  if (p.integer("heads") / std::max<int64_t>(p.integer("kv_heads"), 1) > 1) {  // latent keys are made for all heads
    config.fail("num_key_value_heads", "as many as num_attention_heads can be derived");
  }
  p.set("kv_heads", p.integer("heads"));
  if (read_rotary(config, 1) != 1) config.fail("partial_rotary_factor", "1 is what can be derived");
  config.pass_over({"aux_loss_alpha", "ep_size", "head_dim", "moe_layer_freq", "n_group", "n_routed_experts",
                    "norm_topk_prob", "num_mtp_layers", "num_nextn_predict_layers", "pretraining_tp", "qk_head_dim",
                    "routed_scaling_factor", "seq_aux", "topk_group"});
}

}  // namespace

double read_rotary(HfConfig& config, double share, bool* two_tables) {
  share = config.real("partial_rotary_factor", share);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (auto rope = config.object(key)) check_rope(*rope, &share, two_tables);
  }
  return share;
}

void read_rotary_by_layer_type(HfConfig& config) {
  double share = 1;
  if (auto kinds = config.object("rope_parameters")) {
    for (const char* kind : {"sliding_attention", "full_attention"}) {
      if (auto rope = kinds->object(kind)) check_rope(*rope, &share);
    }
  }
  if (auto rope = config.object("rope_scaling")) check_rope(*rope, &share);
}

std::string read_layer_types(HfConfig& config, int64_t layers) {
  std::string pattern;
  for (const std::string& type : config.texts("layer_types")) {
    if (type != "full_attention" && type != "sliding_attention") {
      config.fail("layer_types", "full_attention and sliding_attention can be derived");
    }
    pattern += type == "full_attention" ? 'f' : 's';
  }
  if (!pattern.empty() && static_cast<int64_t>(pattern.size()) != layers) {
    config.fail("layer_types", "it must name as many as num_hidden_layers says");
  }
  return pattern;
}

void read_llama(HfConfig& config, Configuration& p) {
  read_sizes(config, p, {});
  read_rotary(config, 1);
  const bool bias = config.flag("attention_bias", false);
  p.set("qkv_bias", bias);
  p.set("out_bias", bias);
  p.set("mlp_bias", config.flag("mlp_bias", false));
  config.pass_over({"pretraining_tp"});
}

void read_mistral(HfConfig& config, Configuration& p) {
  read_sizes(config, p, {.intermediate = 14336, .kv_heads = 8, .positions = 4096 * 32});
  read_rotary(config, 1);
  read_window(config, p, 4096);
}

void read_qwen2(HfConfig& config, Configuration& p) {
  read_sizes(config, p, {.vocab = 151936, .intermediate = 22016, .kv_heads = 32, .positions = 32768});
  read_rotary(config, 1);
  read_qwen_windows(config, p, 28);
  p.set("qkv_bias", true);
}

void read_qwen3(HfConfig& config, Configuration& p) {
  read_sizes(config, p, {.vocab = 151936, .intermediate = 22016, .kv_heads = 32, .head = 128, .positions = 32768});
  read_rotary(config, 1);
  read_qwen_windows(config, p, 28);
  const bool bias = config.flag("attention_bias", false);
  p.set("qkv_bias", bias);
  p.set("out_bias", bias);
  p.set("query_norm", std::string("head"));
}

void read_phi3(HfConfig& config, Configuration& p) {
  read_sizes(config, p, {.vocab = 32064, .hidden = 3072, .intermediate = 8192, .positions = 4096, .eps = 1e-5});
  bool two_tables = false;
  p.set("rotary", read_rotary(config, 1, &two_tables));
  p.set("long_rotary", two_tables);
  read_window(config, p, 0);
  p.set("fused", true);
  p.set("dropout", config.real("resid_pdrop", 0));
  config.pass_over({"embd_pdrop", "original_max_position_embeddings"});  // it has no dropout behind the embedding
}

void read_gemma(HfConfig& config, Configuration& p) {
  const char* key = config.given("hidden_activation") ? "hidden_activation" : "hidden_act";
  read_gemma_like(config, p,
                  {.vocab = 256000,
                   .hidden = 3072,
                   .intermediate = 24576,
                   .layers = 28,
                   .heads = 16,
                   .kv_heads = 16,
                   .head = 256,
                   .positions = 8192,
                   .activation_key = key,
                   .activation = "gelu_pytorch_tanh",
                   .tied = true});
  read_rotary(config, 1);
  config.pass_over({"hidden_act"});
}

void read_gemma2(HfConfig& config, Configuration& p) {
  read_gemma_like(config, p,
                  {.vocab = 256000,
                   .hidden = 2304,
                   .intermediate = 9216,
                   .layers = 26,
                   .heads = 8,
                   .kv_heads = 4,
                   .head = 256,
                   .positions = 8192,
                   .activation_key = "hidden_activation",
                   .activation = "gelu_pytorch_tanh",
                   .tied = true});
  read_rotary(config, 1);
  p.set("softcap", 30.0);
  read_gemma_windows(config, p, 2);
  p.set("attention_softcap", config.real("attn_logit_softcapping", 50));
  p.set("attention", std::string("eager"));  // the class allows no other that PyTorch has
  config.pass_over({"hidden_act", "sliding_window_size"});
}

void read_gemma3(HfConfig& config, Configuration& p) {
  read_gemma_like(config, p,
                  {.vocab = 262208,
                   .hidden = 2304,
                   .intermediate = 9216,
                   .layers = 26,
                   .heads = 8,
                   .kv_heads = 4,
                   .head = 256,
                   .positions = 131072,
                   .activation_key = "hidden_activation",
                   .activation = "gelu_pytorch_tanh",
                   .tied = true});
  read_rotary_by_layer_type(config);
  config.pass_over({"rope_local_base_freq"});
  const int64_t every = config.integer("_sliding_window_pattern", config.integer("sliding_window_pattern", 6));
  read_gemma_windows(config, p, std::clamp<int64_t>(every, 1, kMostLayers));
  config.must_be_zero("attn_logit_softcapping");
  p.set("query_norm", std::string("head_first"));
  p.set("local_rotary", true);
}

void read_olmo2(HfConfig& config, Configuration& p) {
  read_sizes(config, p, {.vocab = 50304, .eps = 1e-5});
  read_rotary(config, 1);
  const bool bias = config.flag("attention_bias", false);
  p.set("qkv_bias", bias);
  p.set("out_bias", bias);
  p.set("query_norm", std::string("width"));
  p.set("norm_side", std::string("after"));
  p.set("norm_weight", std::string("before_cast"));
}

void read_mixtral(HfConfig& config, Configuration& p) {
  read_sizes(config, p, {.intermediate = 14336, .kv_heads = 8, .positions = 4096 * 32, .eps = 1e-5});
  read_rotary(config, 1);
  read_window(config, p, 0);
  read_experts(config, p, "num_local_experts", 8, 2);
  p.set("normed_scores", true);
  config.must_be_zero("router_jitter_noise");
}

void read_qwen2_moe(HfConfig& config, Configuration& p) {
  read_sizes(config, p,
             {.vocab = 151936,
              .hidden = 2048,
              .intermediate = 5632,
              .layers = 24,
              .heads = 16,
              .kv_heads = 16,
              .positions = 32768});
  read_rotary(config, 1);
  config.must_be("use_sliding_window", false, false);
  p.set("qkv_bias", config.flag("qkv_bias", true));
  p.set("intermediate", config.integer("moe_intermediate_size", 1408));
  p.set("spare_mask", true);
  p.set("shared_expert", config.integer("shared_expert_intermediate_size", 5632));
  read_experts(config, p, "num_experts", 60, 4);
  p.set("normed_scores", config.flag("norm_topk_prob", false));
  p.set("cast_scores", true);
  experts_in_all_layers(config);
  config.pass_over({"sliding_window", "max_window_layers", "layer_types"});
}

void read_qwen3_moe(HfConfig& config, Configuration& p) {
  read_sizes(config, p,
             {.vocab = 151936, .hidden = 2048, .intermediate = 6144, .layers = 24, .kv_heads = 4, .positions = 32768});
  read_rotary(config, 1);
  if (config.flag("use_sliding_window", false)) read_window(config, p, 4096);
  const bool bias = config.flag("attention_bias", false);
  p.set("qkv_bias", bias);
  p.set("out_bias", bias);
  p.set("query_norm", std::string("head"));
  p.set("intermediate", config.integer("moe_intermediate_size", 768));
  read_experts(config, p, config.given("num_local_experts") ? "num_local_experts" : "num_experts", 128, 8);
  p.set("normed_scores", config.flag("norm_topk_prob", false));
  p.set("router_last", true);
  p.set("cast_scores", true);
  experts_in_all_layers(config);
  config.pass_over({"sliding_window", "max_window_layers", "layer_types", "num_experts"});
}

void read_deepseek_v2(HfConfig& config, Configuration& p) {
  read_sizes(config, p, {.vocab = 102400});
  read_deepseek_like(config, p, {.expert_width = 1407, .shared_experts = 2, .dense_layers = 0});
  read_experts(config, p, config.given("num_experts") ? "num_experts" : "n_routed_experts", 64, 1);
  if (!config.given("num_experts_per_tok")) config.fail("num_experts_per_tok", "the library has no default");
  const std::string method = config.text("topk_method", "greedy");
  const bool grouped = method == "group_limited_greedy";
  if (!grouped && method != "greedy") config.fail("topk_method", "greedy and group_limited_greedy can be derived");
  p.set("routing", std::string(grouped ? "grouped_softmax" : "scaled_softmax"));
  p.set("expert_groups", grouped ? config.integer("n_group", 0) : 1);
  p.set("groups_per_token", grouped ? config.integer("topk_group", 0) : 1);
  p.set("latent_rotary", std::string("complex"));
  config.must_be("mlp_bias", false, false);
  config.must_be_text("scoring_func", "softmax");
}

void read_deepseek_v3(HfConfig& config, Configuration& p) {
  read_sizes(config, p,
             {.vocab = 129280, .hidden = 7168, .intermediate = 18432, .layers = 61, .heads = 128, .positions = 4096});
  read_deepseek_like(config, p, {.expert_width = 2048, .shared_experts = 1, .dense_layers = 3});
  read_experts(config, p, config.given("num_local_experts") ? "num_local_experts" : "n_routed_experts", 256, 8);
  p.set("routing", std::string("grouped_sigmoid"));
  p.set("normed_scores", config.flag("norm_topk_prob", true));
  p.set("expert_groups", config.integer("n_group", 8));
  p.set("groups_per_token", config.integer("topk_group", 4));
  p.set("latent_rotary", std::string(config.flag("rope_interleave", true) ? "pairs" : "halves"));
  config.must_be_text("scoring_func", "sigmoid");
  config.must_be_text("topk_method", "noaux_tc");
}

void read_llama4_text(HfConfig& config, Configuration& p) {
  read_sizes(config, p,
             {.vocab = 202048,
              .hidden = 5120,
              .intermediate = 8192,
              .layers = 48,
              .heads = 40,
              .kv_heads = 8,
              .head = 128,
              .positions = 4096 * 32,
              .eps = 1e-5});
  read_rotary(config, 1);
  const bool bias = config.flag("attention_bias", false);
  p.set("qkv_bias", bias);
  p.set("out_bias", bias);
  read_experts(config, p, "num_local_experts", 16, 1);
  p.set("routing", std::string("sigmoid"));
  p.set("router_last", true);
  p.set("shared_expert", p.integer("intermediate"));
  p.set("dense_intermediate", config.integer("intermediate_size_mlp", 16384));
  const int64_t step = config.integer("interleave_moe_layer_step", 1);
  if (step < 1) config.fail("interleave_moe_layer_step", "1 or more can be derived");
  p.set("expert_step", std::max<int64_t>(step, 1));
  std::vector<int64_t> with_experts;
  const int64_t layers = std::clamp<int64_t>(p.integer("layers"), 0, kMostLayers);
  for (int64_t i = p.integer("expert_step") - 1; i < layers; i += p.integer("expert_step")) with_experts.push_back(i);
  if (config.has_items("moe_layers") && config.integers("moe_layers", {}) != with_experts) {
    config.fail("moe_layers", "one in every interleave_moe_layer_step can be derived");
  }
  config.pass_over({"moe_layers"});
  p.set("chunked", true);
  p.set("window", config.integer("attention_chunk_size", 8192));
  p.set("query_norm", std::string(config.flag("use_qk_norm", true) ? "rotated" : "none"));
  const int64_t interval = std::clamp<int64_t>(config.integer("no_rope_layer_interval", 4), 1, kMostLayers);
  std::string pattern;
  const bool named = config.has_items("no_rope_layers");
  for (const int64_t rotates : config.integers("no_rope_layers", {})) pattern += rotates != 0 ? 's' : 'f';
  for (int64_t i = 1; !named && i <= interval; ++i) pattern += i < interval ? 's' : 'f';
  if (named && static_cast<int64_t>(pattern.size()) != layers) {
    config.fail("no_rope_layers", "it must name as many as num_hidden_layers says");
  }
  p.set("pattern", pattern);
  config.must_be_zero("router_jitter_noise");
  config.pass_over({"attn_scale", "attn_temperature_tuning", "cache_implementation", "floor_scale",
                    "for_llm_compressor", "layer_types"});
}

// The multimodal config: its language model.
void read_llama4(HfConfig& config, Configuration& p) {
  auto text = config.object("text_config");
  if (!text) text = *HfConfig::parse("{}", "text_config");  // the library's defaults
  text->pass_over({"model_type"});
  read_llama4_text(*text, p);
  text->pass_over({"dtype", "torch_dtype", "attn_implementation", "_attn_implementation_autoset"});
  config.pass_over({"vision_config", "boi_token_index", "eoi_token_index", "image_token_index", "image_token_id",
                    "tie_word_embeddings"});
}

void read_olmoe(HfConfig& config, Configuration& p) {
  read_sizes(config, p,
             {.vocab = 50304,
              .hidden = 2048,
              .intermediate = 2048,
              .layers = 16,
              .heads = 16,
              .positions = 4096,
              .eps = 1e-5});
  read_rotary(config, 1);
  const bool bias = config.flag("attention_bias", false);
  p.set("qkv_bias", bias);
  p.set("out_bias", bias);
  p.set("query_norm", std::string("width"));
  read_experts(config, p, "num_experts", 64, 8);
  p.set("normed_scores", config.flag("norm_topk_prob", false));
  p.set("cast_scores", true);
  config.must_be_zero("clip_qkv");
}

}  // namespace forerun::zoo
