// Model types of the transformers library, and the classes of diffusion models: which family derives each, and how its config.json becomes the family's
// parameters.
//
// Adding one: a function that reads its keys (hf_*.cpp) and its line in architectures.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zoo/hf_config.h"
#include "zoo/zoo.h"

namespace forerun::zoo {

struct Architecture {
  std::string model_type;  // "llama"; a class of the diffusers library: "UNet2DModel"
  Family (*family)();
  // Sets what the config says; what it leaves out are the defaults of the library's configuration class.
  void (*read)(HfConfig& config, Configuration& parameters);
};

// In the order `forerun zoo` shows.
const std::vector<Architecture>& architectures();

// What a config describes: a family and its parameters.
struct DescribedModel {
  std::string model_type;
  Family family;
  Configuration parameters;
  std::vector<std::string> notes;  // for the answer: keys that nobody knows, what was assumed
};
Result<DescribedModel> described_model(HfConfig config);

// --- decoders of the Llama line (hf_decoders.cpp)
void read_llama(HfConfig& config, Configuration& parameters);
void read_mistral(HfConfig& config, Configuration& parameters);
void read_qwen2(HfConfig& config, Configuration& parameters);
void read_qwen3(HfConfig& config, Configuration& parameters);
void read_phi3(HfConfig& config, Configuration& parameters);
void read_gemma(HfConfig& config, Configuration& parameters);
void read_gemma2(HfConfig& config, Configuration& parameters);
void read_gemma3(HfConfig& config, Configuration& parameters);
void read_olmo2(HfConfig& config, Configuration& parameters);
void read_mixtral(HfConfig& config, Configuration& parameters);
void read_qwen2_moe(HfConfig& config, Configuration& parameters);
void read_qwen3_moe(HfConfig& config, Configuration& parameters);
void read_deepseek_v2(HfConfig& config, Configuration& parameters);
void read_deepseek_v3(HfConfig& config, Configuration& parameters);
void read_olmoe(HfConfig& config, Configuration& parameters);
void read_llama4_text(HfConfig& config, Configuration& parameters);
void read_llama4(HfConfig& config, Configuration& parameters);

// --- other language models (hf_language.cpp)
void read_gpt2(HfConfig& config, Configuration& parameters);
void read_gpt_neox(HfConfig& config, Configuration& parameters);
void read_opt(HfConfig& config, Configuration& parameters);
void read_falcon(HfConfig& config, Configuration& parameters);
void read_bloom(HfConfig& config, Configuration& parameters);
void read_mamba(HfConfig& config, Configuration& parameters);
void read_bart(HfConfig& config, Configuration& parameters);
void read_t5(HfConfig& config, Configuration& parameters);
void read_whisper(HfConfig& config, Configuration& parameters);
void read_wav2vec2(HfConfig& config, Configuration& parameters);
void read_bert(HfConfig& config, Configuration& parameters);
void read_roberta(HfConfig& config, Configuration& parameters);
void read_xlm_roberta(HfConfig& config, Configuration& parameters);
void read_electra(HfConfig& config, Configuration& parameters);
void read_deberta_v2(HfConfig& config, Configuration& parameters);
void read_distilbert(HfConfig& config, Configuration& parameters);
void read_modernbert(HfConfig& config, Configuration& parameters);

// --- vision models (hf_vision.cpp)
void read_vit(HfConfig& config, Configuration& parameters);
void read_dinov2(HfConfig& config, Configuration& parameters);
void read_segformer(HfConfig& config, Configuration& parameters);
void read_swin(HfConfig& config, Configuration& parameters);
void read_clip(HfConfig& config, Configuration& parameters);
void read_sam_vision(HfConfig& config, Configuration& parameters);
void read_sam(HfConfig& config, Configuration& parameters);

// --- diffusion models (hf_diffusion.cpp)
void read_unet2d(HfConfig& config, Configuration& parameters);
void read_unet2d_condition(HfConfig& config, Configuration& parameters);
void read_dit(HfConfig& config, Configuration& parameters);

// rope_parameters, or what configs had in its place before transformers 5: checks that the scaling can be derived and gives
// the part of each head with rotary positions, `share` where the config does not say. `two_tables`: set where the length of
// the sequence chooses one of two tables (longrope), which is refused where there is none to set.
double read_rotary(HfConfig& config, double share, bool* two_tables = nullptr);
// The same where each kind of layer has its own.
void read_rotary_by_layer_type(HfConfig& config);
// layer_types, one of each of the layers: f for full_attention, s for sliding_attention; empty where the config has none.
std::string read_layer_types(HfConfig& config, int64_t layers);

}  // namespace forerun::zoo
