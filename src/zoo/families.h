// Every family of the zoo, one file each: `xyz_family()` describes it, `xyz_models()` lists its named models.
//
// Adding a family: one file, its declarations here, and its line in registry.cpp or architectures.cpp.
#pragma once

#include <string>
#include <vector>

#include "zoo/zoo.h"

namespace forerun::zoo {

// --- convolutional
Family resnet_family();
Family wide_resnet_family();
std::vector<NamedModel> resnet_models();  // of both
Family mnasnet_family();
std::vector<NamedModel> mnasnet_models();
Family alexnet_family();
std::vector<NamedModel> alexnet_models();
Family convnext_family();
std::vector<NamedModel> convnext_models();
Family efficientnet_family();
std::vector<NamedModel> efficientnet_models();
Family googlenet_family();
std::vector<NamedModel> googlenet_models();
Family inception_family();
std::vector<NamedModel> inception_models();
Family regnet_family();
std::vector<NamedModel> regnet_models();
Family shufflenet_family();
std::vector<NamedModel> shufflenet_models();
Family squeezenet_family();
std::vector<NamedModel> squeezenet_models();
Family vgg_family();
std::vector<NamedModel> vgg_models();
Family densenet_family();
std::vector<NamedModel> densenet_models();
std::vector<Family> mobilenet_families();  // mobilenet_v2, mobilenet_v3
std::vector<NamedModel> mobilenet_models();
Family unet_family();
std::vector<NamedModel> unet_models();
Family randwire_family();
std::vector<NamedModel> randwire_models();
Family nas_cell_family();
std::vector<NamedModel> nas_cell_models();

// --- sequences, attention, recommendation
Family transformer_family();
std::vector<NamedModel> transformer_models();
std::vector<Family> rnn_families();  // lstm, rnn, gru
std::vector<NamedModel> rnn_models();
Family bert_family();
std::vector<NamedModel> bert_models();
Family gpt2_family();
std::vector<NamedModel> gpt2_models();
Family llama_family();
std::vector<NamedModel> llama_models();
Family t5_family();
std::vector<NamedModel> t5_models();
Family vit_family();
Family vit_parallel_family();
std::vector<NamedModel> vit_parallel_models();
std::vector<NamedModel> vit_models();
Family swin_family();
std::vector<NamedModel> swin_models();
Family dlrm_family();
std::vector<NamedModel> dlrm_models();

// What every image family also takes: batch, channels, image, classes. Its own parameters come first.
std::vector<Parameter> with_image_parameters(std::vector<Parameter> own, int64_t image = 224, int64_t classes = 1000);

// The input of an image family: [batch, channels, image, image].
TensorId image_input(ForwardBuilder& builder, const Configuration& configuration);

// --- of config.json files alone (architectures.h)
Family decoder_family();
Family gpt_neox_family();
Family opt_family();
Family falcon_family();
Family bloom_family();
Family mamba_family();
Family encoder_family();
Family distilbert_family();
Family deberta_family();
Family modernbert_family();
Family bart_family();
Family whisper_family();
Family wav2vec2_family();
Family clip_family();
Family image_encoder_family();
Family segformer_family();
Family swin_encoder_family();
Family sam_encoder_family();
Family ddpm_unet_family();
Family dit_family();

}  // namespace forerun::zoo
