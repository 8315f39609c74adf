#include "zoo/architectures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/nearest.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

const Architecture* find_architecture(std::string_view model_type) {
  const auto& all = architectures();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Architecture& a) { return a.model_type == model_type; });
  return found == all.end() ? nullptr : &*found;
}

// Where a config says what it is of; configs of the diffusers library have a class's name.
std::string type_key(const HfConfig& config) {
  return !config.given("model_type") && config.given("_class_name") ? "_class_name" : "model_type";
}

Error unknown_type(const std::string& model_type, HfConfig& config) {
  std::vector<std::string> known;
  for (const Architecture& architecture : architectures()) known.push_back(architecture.model_type);
  config.fail(type_key(config), fmt::format("{} `forerun zoo` lists the model types", did_you_mean(model_type, known)));
  return config.status().error();
}

// Keys that mean the same for every model type.
void read_common(HfConfig& config, Configuration& parameters, std::vector<std::string>& notes) {
  if (config.given("quantization_config")) {
    config.fail("quantization_config", "weights as they are trained can be derived");
  }
  config.must_be_zero("chunk_size_feed_forward");
  config.must_be("add_cross_attention", false, false);
  config.must_be("output_hidden_states", false, false);
  config.must_be("output_attentions", false, false);
  config.pass_over({"cross_attention_hidden_size", "is_decoder", "tie_encoder_decoder", "sep_token_id"});
  for (const char* key : {"attn_implementation", "_attn_implementation"}) {
    if (!parameters.has("attention")) config.must_be_text(key, "sdpa");
    if (parameters.has("attention") && config.given(key)) parameters.set("attention", config.text(key, "sdpa"));
  }
  const std::string dtype = config.text("dtype", config.text("torch_dtype", "float32"));
  if (dtype != "float32") {
    notes.push_back(fmt::format("the config's dtype {} is passed over: --precision says it", dtype));
  }
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> list = {
      {"llama", decoder_family, read_llama},
      {"mistral", decoder_family, read_mistral},
      {"qwen2", decoder_family, read_qwen2},
      {"qwen3", decoder_family, read_qwen3},
      {"phi3", decoder_family, read_phi3},
      {"gemma", decoder_family, read_gemma},
      {"gemma2", decoder_family, read_gemma2},
      {"gemma3_text", decoder_family, read_gemma3},
      {"olmo2", decoder_family, read_olmo2},
      {"mixtral", decoder_family, read_mixtral},
      {"qwen2_moe", decoder_family, read_qwen2_moe},
      {"qwen3_moe", decoder_family, read_qwen3_moe},
      {"olmoe", decoder_family, read_olmoe},
      {"deepseek_v2", decoder_family, read_deepseek_v2},
      {"deepseek_v3", decoder_family, read_deepseek_v3},
      {"llama4", decoder_family, read_llama4},
      {"llama4_text", decoder_family, read_llama4_text},
      {"gpt2", gpt2_family, read_gpt2},
      {"gpt_neox", gpt_neox_family, read_gpt_neox},
      {"opt", opt_family, read_opt},
      {"falcon", falcon_family, read_falcon},
      {"bloom", bloom_family, read_bloom},
      {"mamba", mamba_family, read_mamba},
      {"bert", encoder_family, read_bert},
      {"roberta", encoder_family, read_roberta},
      {"xlm-roberta", encoder_family, read_xlm_roberta},
      {"electra", encoder_family, read_electra},
      {"distilbert", distilbert_family, read_distilbert},
      {"deberta-v2", deberta_family, read_deberta_v2},
      {"modernbert", modernbert_family, read_modernbert},
      {"bart", bart_family, read_bart},
      {"t5", t5_family, read_t5},
      {"whisper", whisper_family, read_whisper},
      {"wav2vec2", wav2vec2_family, read_wav2vec2},
      {"vit", image_encoder_family, read_vit},
      {"dinov2", image_encoder_family, read_dinov2},
      {"segformer", segformer_family, read_segformer},
      {"swin", swin_encoder_family, read_swin},
      {"clip", clip_family, read_clip},
      {"sam", sam_encoder_family, read_sam},
      {"sam_vision_model", sam_encoder_family, read_sam_vision},
      {"UNet2DModel", ddpm_unet_family, read_unet2d},
      {"UNet2DConditionModel", ddpm_unet_family, read_unet2d_condition},
      {"dit", dit_family, read_dit},
  };
  return list;
}

Result<DescribedModel> described_model(HfConfig config) {
  const std::string key = type_key(config);
  if (!config.given(key)) {
    config.fail("model_type", "it says which model of the transformers library this is");
    return config.status().error();
  }
  const std::string model_type = config.text(key, "");
  if (!config.status().ok()) return config.status().error();
  const Architecture* architecture = find_architecture(model_type);
  if (architecture == nullptr) return unknown_type(model_type, config);
  DescribedModel model{model_type, architecture->family(), {}, {}};
  for (const Parameter& parameter : model.family.parameters) model.parameters.set(parameter.name, parameter.otherwise);
  architecture->read(config, model.parameters);
  read_common(config, model.parameters, model.notes);
  if (!config.status().ok()) return config.status().error();
  if (model.parameters.has("experts") && model.parameters.integer("experts") > 0) {
    model.notes.emplace_back("tokens are taken to be spread evenly over the experts");
  }
  if (model_type == "llama4") model.notes.emplace_back("the language model alone: its image encoder is left out");
  if (model_type == "mamba") {
    model.notes.emplace_back("the scan is a loop over the sequence, as it runs where mamba_ssm is not installed");
  }
  if (model_type == "UNet2DConditionModel") {
    model.notes.emplace_back("the U-Net alone: texts and images are encoded before, by networks that are not trained");
  }
  if (model_type == "sam") model.notes.emplace_back("the image encoder alone: prompts and mask decoder are left out");
  if (model.parameters.has("layerdrop") && model.parameters.real("layerdrop") > 0) {
    model.notes.push_back(
        fmt::format("all layers are taken to run, where training leaves each out in {:.3g} % of the "
                    "iterations (layerdrop)",
                    100 * model.parameters.real("layerdrop")));
  }
  if (const auto unread = config.unread(); !unread.empty()) {
    model.notes.push_back(
        fmt::format("keys of the config that are not known and were passed over: {}", fmt::join(unread, ", ")));
  }
  return model;
}

}  // namespace forerun::zoo
