// config.json of language models outside the Llama line -> the parameters of gpt2.cpp, gpt_neox.cpp, opt.cpp, encoder.cpp
// and distilbert.cpp.
//
// Defaults are those of the configuration classes of transformers 5.22.
#include <algorithm>
#include <string>

#include "zoo/architectures.h"

namespace forerun::zoo {
namespace {

constexpr int64_t kLongestUsual = 2048;  // tokens in a sequence, where the model takes so many
constexpr int64_t kUsualForEncoders = 512;

struct EncoderDefaults {
  const char* kind;
  int64_t vocab;
  int64_t hidden;
  int64_t embedding;
  int64_t intermediate;
  int64_t heads;
  int64_t positions_kept;  // rows of the position table that padding takes
};

// BERT's keys, which its kin have kept.
void read_bert_like(HfConfig& config, Configuration& p, const EncoderDefaults& d) {
  p.set("kind", std::string(d.kind));
  p.set("vocab", config.integer("vocab_size", d.vocab));
  p.set("hidden", config.integer("hidden_size", d.hidden));
  p.set("layers", config.integer("num_hidden_layers", 12));
  p.set("heads", config.integer("num_attention_heads", d.heads));
  p.set("intermediate", config.integer("intermediate_size", d.intermediate));
  p.set("positions", config.integer("max_position_embeddings", 512));
  p.set("types", config.integer("type_vocab_size", 2));
  p.set("eps", config.real("layer_norm_eps", 1e-12));
  p.set("activation", config.text("hidden_act", "gelu"));
  p.set("dropout", config.real("hidden_dropout_prob", 0.1));
  p.set("attention_dropout", config.real("attention_probs_dropout_prob", 0.1));
  p.set("length", std::min(p.integer("positions") - d.positions_kept, kUsualForEncoders));
  config.must_be("is_decoder", false, false);
  config.must_be("tie_word_embeddings", true, true);
  config.must_be_text("position_embedding_type", "absolute");
  config.pass_over({"classifier_dropout", "gradient_checkpointing", "pooler_fc_size", "pooler_num_attention_heads",
                    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "directionality"});
}

// pos_att_type, a list or a text with bars: both kinds of scores can be derived.
void read_position_attention(HfConfig& config) {
  std::string kinds;
  if (config.is_text("pos_att_type")) {
    kinds = config.text("pos_att_type", "");
  } else {
    for (const std::string& kind : config.texts("pos_att_type")) kinds += (kinds.empty() ? "" : "|") + kind;
  }
  if (kinds != "p2c|c2p" && kinds != "c2p|p2c") config.fail("pos_att_type", "p2c|c2p is what can be derived");
}

}  // namespace

void read_gpt2(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 50257));
  p.set("width", config.integer("n_embd", 768));
  p.set("layers", config.integer("n_layer", 12));
  p.set("heads", config.integer("n_head", 12));
  p.set("inner", config.integer("n_inner", 0));
  p.set("positions", config.integer("n_positions", 1024));
  p.set("length", p.integer("positions"));
  p.set("dropout", config.real("resid_pdrop", 0.1));
  for (const char* key : {"embd_pdrop", "attn_pdrop"}) {
    if (config.real(key, 0.1) != p.real("dropout")) config.fail(key, "it must be as resid_pdrop is");
  }
  config.must_be_text("activation_function", "gelu_new");
  config.must_be("scale_attn_weights", true, true);
  config.must_be("scale_attn_by_inverse_layer_idx", false, false);
  config.must_be("reorder_and_upcast_attn", false, false);
  config.must_be("tie_word_embeddings", true, true);
  config.pass_over({"layer_norm_epsilon", "n_ctx", "summary_activation", "summary_first_dropout",
                    "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

void read_gpt_neox(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 50432));
  p.set("hidden", config.integer("hidden_size", 6144));
  p.set("layers", config.integer("num_hidden_layers", 44));
  p.set("heads", config.integer("num_attention_heads", 64));
  p.set("intermediate", config.integer("intermediate_size", 24576));
  p.set("activation", config.text("hidden_act", "gelu"));
  p.set("rotary", read_rotary(config, config.real("rotary_pct", 0.25)));
  p.set("eps", config.real("layer_norm_eps", 1e-5));
  p.set("attention_dropout", config.real("attention_dropout", 0));
  p.set("dropout", config.real("hidden_dropout", 0));
  p.set("bias", config.flag("attention_bias", true));
  p.set("parallel", config.flag("use_parallel_residual", true));
  p.set("tied", config.flag("tie_word_embeddings", false));
  p.set("length", std::min(config.integer("max_position_embeddings", 2048), kLongestUsual));
  config.pass_over({"rotary_emb_base", "classifier_dropout"});
}

void read_opt(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 50272));
  p.set("hidden", config.integer("hidden_size", 768));
  p.set("layers", config.integer("num_hidden_layers", 12));
  p.set("heads", config.integer("num_attention_heads", 12));
  p.set("intermediate", config.integer("ffn_dim", 3072));
  p.set("positions", config.integer("max_position_embeddings", 2048));
  p.set("embedding", config.integer("word_embed_proj_dim", p.integer("hidden")));
  p.set("activation", config.text("activation_function", "relu"));
  p.set("dropout", config.real("dropout", 0.1));
  p.set("attention_dropout", config.real("attention_dropout", 0));
  p.set("bias", config.flag("enable_bias", true));
  p.set("norm_before", config.flag("do_layer_norm_before", true));
  p.set("final_norm", !config.flag("_remove_final_layer_norm", false));
  p.set("tied", config.flag("tie_word_embeddings", true));
  p.set("length", std::min(p.integer("positions"), kLongestUsual));
  config.must_be_zero("layerdrop");
  config.must_be("layer_norm_elementwise_affine", true, true);
  config.pass_over({"init_std"});
}

void read_falcon(HfConfig& config, Configuration& p) {
  const int64_t heads = config.integer(config.given("n_head") ? "n_head" : "num_attention_heads", 71);
  const bool grouped = config.flag("new_decoder_architecture", false);
  const bool parallel = config.flag("parallel_attn", true);
  const bool multi_query = config.flag("multi_query", true);
  const int64_t kv_heads = config.integer("num_kv_heads", 0);
  p.set("vocab", config.integer("vocab_size", 65024));
  p.set("hidden", config.integer("hidden_size", 4544));
  p.set("layers", config.integer(config.given("n_layer") ? "n_layer" : "num_hidden_layers", 32));
  p.set("heads", heads);
  p.set("kv_heads", multi_query && !grouped ? 1 : kv_heads > 0 ? kv_heads : heads);
  const int64_t inner = config.integer("ffn_hidden_size", 0);
  p.set("intermediate", inner > 0 ? inner : 4 * p.integer("hidden"));
  p.set("grouped", grouped);
  p.set("parallel", parallel);
  p.set("two_norms", grouped && config.integer("num_ln_in_parallel_attn", 0) != 1);
  p.set("eps", config.real("layer_norm_epsilon", 1e-5));
  p.set("activation", config.text("activation", "gelu"));
  p.set("attention_dropout", config.real("attention_dropout", 0));
  p.set("dropout", config.real("hidden_dropout", 0));
  p.set("bias", config.flag("bias", false));
  p.set("tied", config.flag("tie_word_embeddings", true));
  p.set("length", std::min(config.integer("max_position_embeddings", 2048), kLongestUsual));
  if (read_rotary(config, 1) != 1) config.fail("partial_rotary_factor", "1 is what can be derived");
  if (grouped && !parallel) config.fail("parallel_attn", "new_decoder_architecture takes true");
  if (!grouped && config.integer("num_ln_in_parallel_attn", 0) == 2) {
    config.fail("num_ln_in_parallel_attn", "2 takes new_decoder_architecture");
  }
  config.must_be("alibi", false, false);
  config.must_be("apply_residual_connection_post_layernorm", false, false);
  config.pass_over({"num_ln_in_parallel_attn", "rotary"});
}

void read_bloom(HfConfig& config, Configuration& p) {
  const char* width = config.given("n_embed") ? "n_embed" : "hidden_size";
  p.set("vocab", config.integer("vocab_size", 250880));
  p.set("hidden", config.integer(width, 64));
  p.set("layers", config.integer(config.given("num_hidden_layers") ? "num_hidden_layers" : "n_layer", 2));
  p.set("heads", config.integer(config.given("num_attention_heads") ? "num_attention_heads" : "n_head", 8));
  p.set("eps", config.real("layer_norm_epsilon", 1e-5));
  p.set("attention_dropout", config.real("attention_dropout", 0));
  p.set("dropout", config.real("hidden_dropout", 0));
  p.set("residual_after_norm", config.flag("apply_residual_connection_post_layernorm", false));
  p.set("tied", config.flag("tie_word_embeddings", true));
  p.set("length", std::min(config.integer("seq_length", kLongestUsual), kLongestUsual));
  if (config.flag("slow_but_exact", false) && config.integer("pretraining_tp", 1) > 1) {
    config.fail("slow_but_exact", "false is what can be derived");
  }
  config.pass_over({"pretraining_tp", "attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion",
                    "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "unk_token_id"});
}

void read_bart(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 50265));
  p.set("hidden", config.integer("d_model", 1024));
  p.set("layers", config.integer("encoder_layers", 12));
  p.set("decoder_layers", config.integer("decoder_layers", 12));
  p.set("encoder_heads", config.integer("encoder_attention_heads", 16));
  p.set("decoder_heads", config.integer("decoder_attention_heads", 16));
  p.set("encoder_intermediate", config.integer("encoder_ffn_dim", 4096));
  p.set("decoder_intermediate", config.integer("decoder_ffn_dim", 4096));
  p.set("positions", config.integer("max_position_embeddings", 1024));
  p.set("activation", config.text("activation_function", "gelu"));
  p.set("dropout", config.real("dropout", 0.1));
  p.set("attention_dropout", config.real("attention_dropout", 0));
  p.set("activation_dropout", config.real("activation_dropout", 0));
  p.set("length", std::min(p.integer("positions"), kUsualForEncoders));
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"}) config.must_be_zero(key);
  config.must_be("tie_word_embeddings", true, true);
  for (const char* key : {"add_bias_logits", "add_final_layer_norm", "normalize_before"}) {
    config.must_be(key, false, false);  // keys of old configs, which the library no longer reads
  }
  config.pass_over({"classif_dropout", "classifier_dropout", "gradient_checkpointing", "init_std", "num_hidden_layers",
                    "normalize_embedding", "scale_embedding", "force_bos_token_to_be_generated"});
}

void read_t5(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 32128));
  p.set("d_model", config.integer("d_model", 512));
  p.set("d_kv", config.integer("d_kv", 64));
  p.set("d_ff", config.integer("d_ff", 2048));
  p.set("layers", config.integer("num_layers", 6));
  const int64_t decoder_layers = config.integer("num_decoder_layers", 0);
  p.set("decoder_layers", decoder_layers > 0 ? decoder_layers : p.integer("layers"));
  p.set("heads", config.integer("num_heads", 8));
  p.set("buckets", config.integer("relative_attention_num_buckets", 32));
  p.set("max_distance", config.integer("relative_attention_max_distance", 128));
  p.set("dropout", config.real("dropout_rate", 0.1));
  p.set("length", kUsualForEncoders);
  p.set("attention", std::string("sdpa"));
  const std::string projection = config.text("feed_forward_proj", "relu");
  const bool gated = projection.starts_with("gated-");
  p.set("gated", gated);
  const std::string named = gated ? projection.substr(std::string("gated-").size()) : projection;
  p.set("activation", projection == "gated-gelu" ? "gelu_new" : named);
  // The library ties the head in any case, and takes the key for whether its input is scaled.
  p.set("scaled_output", config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", true)));
  config.must_be("is_decoder", false, false);
  config.pass_over({"tie_word_embeddings", "layer_norm_epsilon", "n_positions", "classifier_dropout", "is_gated_act",
                    "dense_act_fn", "output_past"});
}

void read_whisper(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 51865));
  p.set("hidden", config.integer("d_model", 384));
  p.set("layers", config.integer("encoder_layers", 4));
  p.set("decoder_layers", config.integer("decoder_layers", 4));
  p.set("encoder_heads", config.integer("encoder_attention_heads", 6));
  p.set("decoder_heads", config.integer("decoder_attention_heads", 6));
  p.set("encoder_intermediate", config.integer("encoder_ffn_dim", 1536));
  p.set("decoder_intermediate", config.integer("decoder_ffn_dim", 1536));
  p.set("mel_bins", config.integer("num_mel_bins", 80));
  p.set("source_positions", config.integer("max_source_positions", 1500));
  p.set("positions", config.integer("max_target_positions", 448));
  p.set("activation", config.text("activation_function", "gelu"));
  p.set("dropout", config.real("dropout", 0));
  p.set("attention_dropout", config.real("attention_dropout", 0));
  p.set("activation_dropout", config.real("activation_dropout", 0));
  p.set("length", p.integer("positions"));
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"}) config.must_be_zero(key);
  config.must_be("tie_word_embeddings", true, true);
  config.must_be("apply_spec_augment", false, false);
  config.pass_over({"classifier_proj_size", "init_std", "mask_feature_length", "mask_feature_min_masks",
                    "mask_feature_prob", "mask_time_length", "mask_time_min_masks", "mask_time_prob",
                    "median_filter_width", "num_hidden_layers", "scale_embedding", "use_weighted_layer_sum"});
}

void read_bert(HfConfig& config, Configuration& p) { read_bert_like(config, p, {"bert", 30522, 768, 0, 3072, 12, 0}); }

void read_roberta(HfConfig& config, Configuration& p) {
  read_bert_like(config, p, {"roberta", 50265, 768, 0, 3072, 12, 2});
}

void read_xlm_roberta(HfConfig& config, Configuration& p) {
  read_roberta(config, p);
  p.set("kind", std::string("xlm_roberta"));
}

void read_electra(HfConfig& config, Configuration& p) {
  read_bert_like(config, p, {"electra", 30522, 256, 128, 1024, 4, 0});
  p.set("embedding", config.integer("embedding_size", 128));
  config.pass_over({"summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"});
}

void read_distilbert(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 30522));
  p.set("hidden", config.integer("dim", 768));
  p.set("layers", config.integer("n_layers", 6));
  p.set("heads", config.integer("n_heads", 12));
  p.set("intermediate", config.integer("hidden_dim", 4 * 768));
  p.set("positions", config.integer("max_position_embeddings", 512));
  p.set("activation", config.text("activation", "gelu"));
  p.set("dropout", config.real("dropout", 0.1));
  p.set("attention_dropout", config.real("attention_dropout", 0.1));
  p.set("length", std::min(p.integer("positions"), kUsualForEncoders));
  config.must_be("sinusoidal_pos_embds", false, false);  // they would not be trained
  config.must_be("tie_word_embeddings", true, true);
  config.pass_over({"qa_dropout", "seq_classif_dropout", "tie_weights_"});
}

void read_deberta_v2(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 128100));
  p.set("hidden", config.integer("hidden_size", 1536));
  p.set("layers", config.integer("num_hidden_layers", 24));
  p.set("heads", config.integer("num_attention_heads", 24));
  p.set("intermediate", config.integer("intermediate_size", 6144));
  p.set("positions", config.integer("max_position_embeddings", 512));
  p.set("eps", config.real("layer_norm_eps", 1e-7));
  p.set("activation", config.text("hidden_act", "gelu"));
  p.set("dropout", config.real("hidden_dropout_prob", 0.1));
  p.set("attention_dropout", config.real("attention_probs_dropout_prob", 0.1));
  p.set("length", std::min(p.integer("positions"), kUsualForEncoders));
  p.set("buckets", config.integer("position_buckets", -1));
  for (const char* key : {"relative_attention", "share_att_key"}) config.must_be(key, true, false);
  for (const char* key : {"legacy", "tie_word_embeddings"}) config.must_be(key, true, true);
  config.must_be("position_biased_input", false, true);
  if (config.text("norm_rel_ebd", "none") != "layer_norm") config.fail("norm_rel_ebd", "layer_norm can be derived");
  const int64_t head = p.integer("hidden") / std::max<int64_t>(p.integer("heads"), 1);
  if (config.integer("attention_head_size", head) != head) {
    config.fail("attention_head_size", "hidden_size over num_attention_heads is what can be derived");
  }
  config.must_be_zero("type_vocab_size");
  config.must_be_zero("conv_kernel_size");
  if (p.integer("buckets") < 1) config.fail("position_buckets", "distances in buckets can be derived");
  if (config.integer("embedding_size", p.integer("hidden")) != p.integer("hidden")) {
    config.fail("embedding_size", "hidden_size is what can be derived");
  }
  read_position_attention(config);
  config.pass_over({"max_relative_positions", "pooler_dropout", "pooler_hidden_act", "pooler_hidden_size", "conv_act",
                    "conv_groups", "padding_idx"});
}

void read_modernbert(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 50368));
  p.set("hidden", config.integer("hidden_size", 768));
  p.set("intermediate", config.integer("intermediate_size", 1152));
  p.set("layers", config.integer("num_hidden_layers", 22));
  p.set("heads", config.integer("num_attention_heads", 12));
  p.set("eps", config.real("norm_eps", 1e-5));
  p.set("norm_bias", config.flag("norm_bias", false));
  p.set("attention_bias", config.flag("attention_bias", false));
  p.set("mlp_bias", config.flag("mlp_bias", false));
  p.set("head_bias", config.flag("classifier_bias", false));
  p.set("decoder_bias", config.flag("decoder_bias", true));
  p.set("activation", config.text("hidden_activation", "gelu"));
  p.set("head_activation", config.text("classifier_activation", "gelu"));
  p.set("attention_dropout", config.real("attention_dropout", 0));
  p.set("mlp_dropout", config.real("mlp_dropout", 0));
  p.set("embedding_dropout", config.real("embedding_dropout", 0));
  p.set("window", config.integer("local_attention", 128) / 2);
  p.set("length", std::min(config.integer("max_position_embeddings", 8192), kUsualForEncoders));
  const int64_t every = std::clamp<int64_t>(config.integer("global_attn_every_n_layers", 3), 1, 64);
  std::string pattern = read_layer_types(config, p.integer("layers"));
  if (pattern.empty()) pattern = "f" + std::string(static_cast<size_t>(every - 1), 's');
  p.set("pattern", pattern);
  read_rotary_by_layer_type(config);
  config.must_be("tie_word_embeddings", true, true);
  config.must_be("sparse_prediction", false, false);
  config.pass_over({"classifier_dropout", "classifier_pooling", "deterministic_flash_attn", "global_rope_theta",
                    "gradient_checkpointing", "initializer_cutoff_factor", "layer_norm_eps", "local_rope_theta",
                    "position_embedding_type", "reference_compile", "repad_logits_with_grad",
                    "sparse_pred_ignore_index"});
}

void read_mamba(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 50280));
  p.set("hidden", config.integer("hidden_size", 768));
  p.set("layers", config.integer("num_hidden_layers", 32));
  p.set("state", config.integer("state_size", 16));
  p.set("kernel", config.integer("conv_kernel", 4));
  p.set("intermediate", p.integer("hidden") * config.integer("expand", 2));
  const int64_t usual_rank = (p.integer("hidden") + 15) / 16;
  const bool automatic = config.is_text("time_step_rank");
  if (automatic) config.must_be_text("time_step_rank", "auto");
  p.set("rank", automatic ? usual_rank : config.integer("time_step_rank", usual_rank));
  p.set("activation", config.text("hidden_act", "silu"));
  p.set("eps", config.real("layer_norm_epsilon", 1e-5));
  p.set("bias", config.flag("use_bias", false));
  p.set("conv_bias", config.flag("use_conv_bias", true));
  p.set("float32_residual", config.flag("residual_in_fp32", true));
  p.set("tied", config.flag("tie_word_embeddings", true));
  config.must_be("use_mambapy", false, false);
  // How weights are drawn, what compiled models alone do, and what the first configs said twice.
  config.pass_over({"d_inner", "d_model", "fused_add_norm", "intermediate_size", "layer_types", "n_layer",
                    "pad_vocab_size_multiple", "rescale_prenorm_residual", "rms_norm", "ssm_cfg", "time_step_floor",
                    "time_step_init_scheme", "time_step_max", "time_step_min", "time_step_scale",
                    "use_associative_scan"});
}

void read_wav2vec2(HfConfig& config, Configuration& p) {
  p.set("vocab", config.integer("vocab_size", 32));
  p.set("hidden", config.integer("hidden_size", 768));
  p.set("layers", config.integer("num_hidden_layers", 12));
  p.set("heads", config.integer("num_attention_heads", 12));
  p.set("intermediate", config.integer("intermediate_size", 3072));
  p.set("activation", config.text("hidden_act", "gelu"));
  p.set("dropout", config.real("hidden_dropout", 0.1));
  p.set("attention_dropout", config.real("attention_dropout", 0.1));
  p.set("activation_dropout", config.real("activation_dropout", 0.1));
  p.set("projection_dropout", config.real("feat_proj_dropout", 0));
  p.set("final_dropout", config.real("final_dropout", 0.1));
  p.set("layerdrop", config.real("layerdrop", 0.1));
  p.set("eps", config.real("layer_norm_eps", 1e-5));
  p.set("stable", config.flag("do_stable_layer_norm", false));
  p.set("conv_widths", config.integers("conv_dim", p.list("conv_widths")));
  p.set("conv_kernels", config.integers("conv_kernel", p.list("conv_kernels")));
  p.set("conv_strides", config.integers("conv_stride", p.list("conv_strides")));
  p.set("conv_bias", config.flag("conv_bias", false));
  p.set("conv_activation", config.text("feat_extract_activation", "gelu"));
  const std::string norm = config.text("feat_extract_norm", "group");
  if (norm != "group" && norm != "layer") config.fail("feat_extract_norm", "group and layer can be derived");
  p.set("conv_layer_norms", norm == "layer");
  const auto convolutions = static_cast<int64_t>(p.list("conv_widths").size());
  if (config.integer("num_feat_extract_layers", convolutions) != convolutions) {
    config.fail("num_feat_extract_layers", "it must be as many as conv_dim names");
  }
  p.set("position_kernel", config.integer("num_conv_pos_embeddings", 128));
  p.set("position_groups", config.integer("num_conv_pos_embedding_groups", 16));
  p.set("mask_probability", config.flag("apply_spec_augment", true) ? config.real("mask_time_prob", 0.05) : 0.0);
  p.set("mask_embedding", config.real("mask_time_prob", 0.05) > 0);
  p.set("mask_length", config.integer("mask_time_length", 10));
  p.set("least_masks", config.integer("mask_time_min_masks", 2));
  p.set("zero_infinity", config.flag("ctc_zero_infinity", false));
  config.must_be_zero("mask_feature_prob");
  config.must_be("add_adapter", false, false);
  config.must_be_zero("adapter_attn_dim");
  const std::string reduction = config.text("ctc_loss_reduction", "sum");
  if (reduction != "sum" && reduction != "mean") config.fail("ctc_loss_reduction", "sum and mean can be derived");
  p.set("mean_loss", reduction == "mean");
  // What pre-training and other tasks read.
  config.pass_over({"adapter_kernel_size",
                    "adapter_stride",
                    "classifier_proj_size",
                    "codevector_dim",
                    "contrastive_logits_temperature",
                    "diversity_loss_weight",
                    "do_stable_layer_norm",
                    "feat_extract_dropout",
                    "feat_quantizer_dropout",
                    "gradient_checkpointing",
                    "mask_channel_length",
                    "mask_channel_min_space",
                    "mask_channel_other",
                    "mask_channel_prob",
                    "mask_channel_selection",
                    "mask_feature_length",
                    "mask_feature_min_masks",
                    "mask_time_min_space",
                    "mask_time_other",
                    "mask_time_selection",
                    "num_adapter_layers",
                    "num_codevector_groups",
                    "num_codevectors_per_group",
                    "num_negatives",
                    "output_hidden_size",
                    "proj_codevector_dim",
                    "tdnn_dilation",
                    "tdnn_dim",
                    "tdnn_kernel",
                    "use_weighted_layer_sum",
                    "xvector_output_dim"});
}

}  // namespace forerun::zoo
