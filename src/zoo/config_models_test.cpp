// Models by config.json and by the name of a checkpoint: sizes are the published ones, keys that would change the
// computation are refused by name, those that nobody knows are told, names are found as people type them.
#include <gtest/gtest.h>

#include <algorithm>

#include "zoo/architectures.h"
#include "zoo/checkpoints.h"
#include "zoo/zoo.h"

namespace forerun::zoo {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

bool has_part(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Result<DescribedModel> described(const std::string& text) {
  Result<HfConfig> config = HfConfig::parse(text, "config.json");
  if (!config) return config.error();
  return described_model(*std::move(config));
}

std::string refusal(const std::string& text) {
  const auto model = described(text);
  EXPECT_FALSE(model) << text << " was taken";
  return model ? "" : model.error().message();
}

std::string notes_of(const std::string& text) {
  const auto model = described(text);
  EXPECT_TRUE(model) << model.error().message();
  std::string all;
  if (model) {
    for (const std::string& note : model->notes) all += note + "\n";
  }
  return all;
}

TEST(ConfigModels, EveryCheckpointHasItsPublishedNumberOfParameters) {
  const auto list = checkpoints();
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_GT(list->size(), 50U);
  for (const Checkpoint& checkpoint : *list) {
    const auto type = std::find_if(
        architectures().begin(), architectures().end(),
        [&](const Architecture& architecture) { return architecture.model_type == checkpoint.model_type; });
    ASSERT_NE(type, architectures().end()) << checkpoint.model_type;
    const Settings small =
        type->family().input == InputKind::tokens ? Settings{{"length", "16"}} : Settings{{"batch", "1"}};
    const auto model = build(checkpoint.names.front(), small);
    ASSERT_TRUE(model) << checkpoint.names.front() << ": " << model.error().message();
    EXPECT_EQ(model->forward.parameter_count(), checkpoint.parameters) << checkpoint.names.front();
    const bool experts = model->configuration.has("experts") && model->configuration.integer("experts") > 0;
    const bool drops = model->configuration.has("layerdrop") && model->configuration.real("layerdrop") > 0;
    const bool part = checkpoint.model_type == "sam" || checkpoint.model_type == "mamba" ||
                      checkpoint.model_type == "UNet2DConditionModel";
    EXPECT_EQ(model->notes.size(), experts || drops || part ? 1U : 0U) << checkpoint.names.front();
  }
}

// The published totals count the image encoder too (its 871,932,416 parameters with the projection behind it).
TEST(ConfigModels, Llama4HasItsPublishedSizeWithoutItsImageEncoder) {
  constexpr int64_t kImages = 871'932'416;
  EXPECT_EQ(build("Llama-4-Scout-17B-16E", {{"length", "16"}})->forward.parameter_count() + kImages, 108'641'793'536);
  EXPECT_EQ(build("Llama-4-Maverick-17B-128E", {{"length", "16"}})->forward.parameter_count() + kImages,
            401'583'781'376);
}

TEST(ConfigModels, Llama4IsReadFromItsMultimodalConfig) {
  const std::string config =
      R"({"model_type": "llama4", "vision_config": {"hidden_size": 1408}, "text_config": {"model_type": "llama4_text",
          "num_hidden_layers": 4, "interleave_moe_layer_step": 2, "moe_layers": [1, 3], "no_rope_layers": [1, 1, 1, 0],
          "attn_temperature_tuning": 4, "use_qk_norm": true}})";
  const auto model = described(config);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->parameters.text("pattern"), "sssf");
  EXPECT_EQ(model->parameters.integer("expert_step"), 2);
  EXPECT_EQ(model->parameters.text("query_norm"), "rotated");
  EXPECT_TRUE(has_part(notes_of(config), "image encoder is left out"));
  EXPECT_TRUE(has_part(refusal(R"({"model_type": "llama4_text", "moe_layers": [0, 1]})"), "moe_layers"));
  EXPECT_TRUE(has_part(refusal(R"({"model_type": "llama4_text", "no_rope_layers": [1]})"), "no_rope_layers"));
}

// Layers with rotary positions look back within their part alone: longer sequences are masked, and shorter ones are not.
TEST(ConfigModels, Llama4LooksBackWithinPartsOfTheSequence) {
  const auto masked = [](const char* length) {
    const auto model = build("Llama-4-Scout-17B-16E", {{"length", length}, {"layers", "4"}, {"window", "64"}});
    EXPECT_TRUE(model) << model.error().message();
    int64_t causal = 0, others = 0;
    for (const Op& op : model->forward.ops()) {
      if (model->forward.name(op).find("scaled_dot_product") == std::string::npos) continue;
      ++(model->forward.attributes(op).get_bool("is_causal", false) ? causal : others);
    }
    return std::pair(causal, others);
  };
  EXPECT_EQ(masked("64"), std::pair(int64_t{4}, int64_t{0}));
  EXPECT_EQ(masked("128"), std::pair(int64_t{1}, int64_t{3}));
}

TEST(ConfigModels, NamesOfCheckpointsAreFoundAsPeopleTypeThem) {
  for (const char* name : {"Qwen/Qwen3-8B", "qwen3-8b", "QWEN3_8B", "qwen/qwen3_8b", "Qwen3-8B-Base"}) {
    const auto found = find_checkpoint(name);
    ASSERT_TRUE(found && found->has_value()) << name;
    EXPECT_EQ((*found)->names.front(), "Qwen/Qwen3-8B") << name;
    EXPECT_TRUE(is_known_name(name));
  }
  const auto dotted = find_checkpoint("llama-3-1-8b");
  ASSERT_TRUE(dotted && dotted->has_value());
  EXPECT_EQ((*dotted)->names.front(), "meta-llama/Llama-3.1-8B");
  for (const char* name : {"DiT-XL/2", "dit_xl_2", "facebookresearch/DiT-XL-2"})
    EXPECT_TRUE(is_known_name(name)) << name;
  EXPECT_FALSE(is_known_name("Qwen/Qwen9-8B"));
  EXPECT_FALSE(is_known_name("other/Qwen3-8B"));
}

TEST(ConfigModels, NamesOfTheZooComeBeforeCheckpoints) {
  const auto model = build("gpt2", {{"length", "16"}});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->family, "gpt2");
  EXPECT_TRUE(model->notes.empty());
}

TEST(ConfigModels, UnknownNamesAreAnsweredWithTheNearest) {
  const auto model = build("qwen3-9b", {});
  ASSERT_FALSE(model);
  EXPECT_TRUE(has_part(model.error().message(), "Qwen3-8B")) << model.error().message();
}

TEST(ConfigModels, UnknownModelTypesAreAnsweredWithTheNearest) {
  const std::string answer = refusal(R"({"model_type": "qwen33"})");
  EXPECT_TRUE(has_part(answer, "model_type is \"qwen33\"")) << answer;
  EXPECT_TRUE(has_part(answer, "qwen3")) << answer;
  EXPECT_TRUE(has_part(refusal(R"({"hidden_size": 64})"), "model_type is missing"));
}

TEST(ConfigModels, WhatChangesTheComputationIsRefusedByKeyAndValue) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"model_type": "llama", "rope_parameters": {"rope_type": "dynamic"}})",
       "rope_parameters.rope_type is \"dynamic\""},
      {R"({"model_type": "gpt_neox", "rope_scaling": {"type": "longrope"}})", "rope_scaling.type is \"longrope\""},
      {R"({"model_type": "llama", "quantization_config": {"bits": 4}})", "quantization_config is {\"bits\":4}"},
      {R"({"model_type": "gpt2", "activation_function": "relu"})", "activation_function is \"relu\""},
      {R"({"model_type": "gpt2", "attn_pdrop": 0.5})", "attn_pdrop is 0.5"},
      {R"({"model_type": "bert", "is_decoder": true})", "is_decoder is true"},
      {R"({"model_type": "opt", "layerdrop": 0.1})", "layerdrop is 0.1"},
      {R"({"model_type": "mixtral", "output_router_logits": true})", "output_router_logits is true"},
      {R"({"model_type": "qwen3_moe", "mlp_only_layers": [0]})", "mlp_only_layers is [0]"},
      {R"({"model_type": "qwen2_moe", "use_sliding_window": true})", "use_sliding_window is true"},
      {R"({"model_type": "falcon", "alibi": true})", "alibi is true"},
      {R"({"model_type": "falcon", "new_decoder_architecture": true, "parallel_attn": false})",
       "parallel_attn is false"},
      {R"({"model_type": "bloom", "slow_but_exact": true, "pretraining_tp": 4})", "slow_but_exact is true"},
      {R"({"model_type": "t5", "feed_forward_proj": "gated-gelu", "is_decoder": true})", "is_decoder is true"},
      {R"({"model_type": "whisper", "encoder_layerdrop": 0.1})", "encoder_layerdrop is 0.1"},
      {R"({"model_type": "whisper", "apply_spec_augment": true})", "apply_spec_augment is true"},
      {R"({"model_type": "clip", "text_config_dict": {"hidden_size": 8}})", "text_config_dict is"},
      {R"({"model_type": "clip", "vision_config": {"hidden_size": "wide"}})", "vision_config.hidden_size is"},
      {R"({"model_type": "segformer", "depths": [2, 2, 2]})", "num_encoder_blocks is"},
      {R"({"model_type": "segformer", "hidden_sizes": [2, "wide"]})", "hidden_sizes is [2,\"wide\"]"},
      {R"({"model_type": "segformer", "strides": 4})", "strides is 4"},
      {R"({"model_type": "swin", "use_absolute_embeddings": true})", "use_absolute_embeddings is true"},
      {R"({"model_type": "mamba", "use_mambapy": true})", "use_mambapy is true"},
      {R"({"model_type": "mamba", "time_step_rank": "large"})", "time_step_rank is \"large\""},
      {R"({"model_type": "wav2vec2", "mask_feature_prob": 0.1})", "mask_feature_prob is 0.1"},
      {R"({"model_type": "wav2vec2", "feat_extract_norm": "batch"})", "feat_extract_norm is \"batch\""},
      {R"({"model_type": "wav2vec2", "add_adapter": true})", "add_adapter is true"},
      {R"({"model_type": "wav2vec2", "conv_dim": [512, 512], "num_feat_extract_layers": 7})",
       "num_feat_extract_layers is 7"},
      {R"({"_class_name": "UNet2DModel", "down_block_types": ["DownBlock2D", "SkipDownBlock2D"]})",
       "down_block_types is [\"DownBlock2D\",\"SkipDownBlock2D\"]"},
      {R"({"_class_name": "UNet2DModel", "mid_block_type": null})", "mid_block_type is null"},
      {R"({"_class_name": "UNet2DModel", "time_embedding_type": "fourier"})", "time_embedding_type is \"fourier\""},
      {R"({"_class_name": "UNet2DConditionModel", "transformer_layers_per_block": [1, 2, 10]})",
       "one block a level can be derived"},
      {R"({"_class_name": "UNet2DConditionModel", "addition_embed_type": "text_time"})", "addition_embed_type is"},
      {R"({"_class_name": "UNet3DModel"})", "_class_name is \"UNet3DModel\""},
      {R"({"model_type": "dit", "mlp_ratio": -4})", "mlp_ratio is -4"},
      {R"({"model_type": "deberta-v2"})", "relative_attention is"},
      {R"({"model_type": "deepseek_v2"})", "num_experts_per_tok is missing"},
      {R"({"model_type": "deepseek_v3", "scoring_func": "softmax"})", "scoring_func is \"softmax\""},
      {R"({"model_type": "qwen3", "layer_types": ["linear_attention"]})", "layer_types is [\"linear_attention\"]"},
      {R"({"model_type": "llama", "hidden_size": "wide"})", "hidden_size is \"wide\""},
      {R"({"model_type": "llama", "hidden_size": 18446744073709551615})", "hidden_size is"},
      {R"({"model_type": 7})", "model_type is 7"},
  };
  for (const auto& [text, part] : cases) EXPECT_TRUE(has_part(refusal(text), part)) << refusal(text);
  EXPECT_FALSE(HfConfig::parse("[1, 2]", "config.json"));
  EXPECT_FALSE(HfConfig::parse("{\"model_type\": \"llama\"", "config.json"));
}

TEST(ConfigModels, ValuesThatMakeNoSenseAreRefused) {
  for (const char* text :
       {R"({"model_type": "llama", "hidden_size": -8})", R"({"model_type": "llama", "num_hidden_layers": 0})",
        R"({"model_type": "llama", "num_key_value_heads": 5})", R"({"model_type": "llama", "head_dim": 3})",
        R"({"model_type": "llama", "hidden_act": "sinh"})", R"({"model_type": "gemma3_text", "sliding_window": null})",
        R"({"model_type": "gpt_neox", "rotary_pct": 0})", R"({"model_type": "mixtral", "num_local_experts": 1})",
        R"({"model_type": "falcon", "num_attention_heads": 70})", R"({"model_type": "bloom", "n_head": 7})",
        R"({"model_type": "t5", "feed_forward_proj": "gated-sinh"})", R"({"model_type": "whisper", "d_model": 100})",
        R"({"model_type": "mamba", "hidden_act": "sinh"})", R"({"model_type": "mamba", "conv_kernel": 0})",
        R"({"model_type": "deepseek_v3", "n_group": 7})", R"({"model_type": "deepseek_v3", "v_head_dim": 0})"}) {
    EXPECT_FALSE(build_recorded(kConfigFamily, text, {.kind = InputKind::tokens, .batch = 1, .size = 8})) << text;
  }
  const auto images = [](const char* text) {
    return build_recorded(kConfigFamily, text, {.kind = InputKind::image, .batch = 1, .size = 224});
  };
  EXPECT_FALSE(images(R"({"model_type": "vit", "patch_size": 1000})"));
  EXPECT_FALSE(images(R"({"model_type": "vit", "image_size": 384})")) << "positions would be interpolated";
  EXPECT_FALSE(images(R"({"model_type": "swin", "window_size": 5})")) << "windows would be padded";
  EXPECT_FALSE(images(R"({"model_type": "segformer", "num_attention_heads": [1, 2, 3, 4]})"));
  const auto speech = [](const char* text, int64_t samples) {
    return build_recorded(kConfigFamily, text, {.kind = InputKind::flat, .batch = 1, .channels = samples});
  };
  EXPECT_TRUE(speech(R"({"model_type": "wav2vec2"})", 40000));
  EXPECT_FALSE(speech(R"({"model_type": "wav2vec2"})", 4000)) << "fewer frames than labels";
  EXPECT_FALSE(speech(R"({"model_type": "wav2vec2", "conv_kernel": [10, 3]})", 40000));
  EXPECT_FALSE(speech(R"({"model_type": "wav2vec2", "num_conv_pos_embedding_groups": 7})", 40000));
  EXPECT_FALSE(images(R"({"model_type": "sam_vision_model"})")) << "positions are for 1024";
  EXPECT_FALSE(images(R"({"model_type": "sam_vision_model", "image_size": 224, "window_size": 0})"));
  EXPECT_FALSE(images(R"({"model_type": "sam", "vision_config": {"image_size": 224, "num_attention_heads": 7}})"));
  EXPECT_FALSE(images(R"({"model_type": "dit", "patch_size": 3})")) << "a third of 224 is no number of patches";
  EXPECT_FALSE(
      images(R"({"_class_name": "UNet2DModel", "norm_num_groups": 7, "block_out_channels": [10, 20, 20, 20]})"));
  EXPECT_FALSE(images(R"({"_class_name": "UNet2DConditionModel", "attention_head_dim": 7})")) << "7 heads of 320";
  EXPECT_FALSE(images(R"({"_class_name": "UNet2DConditionModel", "attention_head_dim": [5, 10]})")) << "four levels";
  EXPECT_FALSE(images(R"({"_class_name": "UNet2DModel", "block_out_channels": [32]})")) << "four kinds of blocks";
  EXPECT_FALSE(images(R"({"model_type": "llama"})")) << "it reads tokens";
}

TEST(ConfigModels, KeysThatNobodyKnowsAreTold) {
  EXPECT_EQ(notes_of(R"({"model_type": "llama", "pad_token_id": 0, "initializer_range": 0.5, "use_cache": true})"), "");
  const std::string notes = notes_of(R"({"model_type": "llama", "rope_parameters": {"rope_spin": 1}, "zeta": 3})");
  EXPECT_TRUE(has_part(notes, "rope_parameters.rope_spin, zeta")) << notes;
  EXPECT_TRUE(has_part(notes_of(R"({"model_type": "llama", "torch_dtype": "bfloat16"})"), "bfloat16"));
  EXPECT_TRUE(has_part(notes_of(R"({"model_type": "olmoe"})"), "spread evenly over the experts"));
  EXPECT_TRUE(has_part(notes_of(R"({"model_type": "wav2vec2"})"), "leaves each out in 10 %"));
  EXPECT_EQ(notes_of(R"({"model_type": "wav2vec2", "layerdrop": 0})"), "");
  EXPECT_TRUE(has_part(notes_of(R"({"model_type": "mamba"})"), "a loop over the sequence"));
  EXPECT_TRUE(has_part(notes_of(R"({"model_type": "sam"})"), "the image encoder alone"));
}

TEST(ConfigModels, NullSwitchesOff) {
  const auto windowed = described(R"({"model_type": "mistral"})");
  const auto full = described(R"({"model_type": "mistral", "sliding_window": null})");
  ASSERT_TRUE(windowed && full);
  EXPECT_EQ(windowed->parameters.text("pattern"), "s");
  EXPECT_EQ(full->parameters.text("pattern"), "f");
}

TEST(ConfigModels, SettingsOfUsersComeOnTop) {
  const auto model = build("Qwen/Qwen3-0.6B", {{"layers", "1"}, {"length", "16"}, {"batch", "3"}});
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->configuration.integer("layers"), 1);
  EXPECT_EQ(model->input.batch, 3);
  EXPECT_EQ(model->input.size, 16);
  EXPECT_FALSE(build("Qwen/Qwen3-0.6B", {{"depth", "1"}}));
}

// What a config says at least: some types have defaults that cannot run, or not on images of 224.
std::string least_config(const std::string& model_type) {
  std::string keys;
  if (model_type == "sam") keys = R"(, "vision_config": {"image_size": 224})";
  if (model_type == "sam_vision_model") keys = R"(, "image_size": 224)";
  if (model_type == "deepseek_v2") keys = R"(, "num_experts_per_tok": 6)";
  if (model_type == "deberta-v2") {
    keys = R"(, "relative_attention": true, "share_att_key": true, "position_biased_input": false,
              "norm_rel_ebd": "layer_norm", "position_buckets": 256, "pos_att_type": ["p2c", "c2p"])";
  }
  return R"({"model_type": ")" + model_type + "\"" + keys + "}";
}

TEST(ConfigModels, DefaultsOfEveryModelTypeCanBeBuilt) {
  for (const Architecture& architecture : architectures()) {
    const auto model =
        build_recorded(kConfigFamily, least_config(architecture.model_type),
                       {.kind = architecture.family().input, .batch = 1, .channels = 64000, .size = 224});
    EXPECT_TRUE(model) << architecture.model_type << ": " << model.error().message();
  }
}

}  // namespace
}  // namespace forerun::zoo
