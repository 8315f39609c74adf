// The visible list of families and named models, in the order `forerun zoo` shows them.
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

template <class T>
void append(std::vector<T>& list, std::vector<T> more) {
  for (T& item : more) list.push_back(std::move(item));
}

std::vector<Family> list_families() {
  std::vector<Family> list = {
      resnet_family(),       wide_resnet_family(), alexnet_family(),      vgg_family(),        googlenet_family(),
      inception_family(),    squeezenet_family(),  densenet_family(),     shufflenet_family(), mnasnet_family(),
      efficientnet_family(), regnet_family(),      convnext_family(),     randwire_family(),   nas_cell_family(),
      unet_family(),         vit_family(),         vit_parallel_family(), swin_family(),       transformer_family(),
      bert_family(),         gpt2_family(),        llama_family(),        t5_family(),         dlrm_family(),
  };
  append(list, mobilenet_families());
  append(list, rnn_families());
  return list;
}

std::vector<NamedModel> list_models() {
  std::vector<NamedModel> list;
  append(list, resnet_models());
  append(list, alexnet_models());
  append(list, vgg_models());
  append(list, googlenet_models());
  append(list, inception_models());
  append(list, squeezenet_models());
  append(list, densenet_models());
  append(list, mobilenet_models());
  append(list, shufflenet_models());
  append(list, mnasnet_models());
  append(list, efficientnet_models());
  append(list, regnet_models());
  append(list, convnext_models());
  append(list, randwire_models());
  append(list, nas_cell_models());
  append(list, unet_models());
  append(list, vit_models());
  append(list, vit_parallel_models());
  append(list, swin_models());
  append(list, transformer_models());
  append(list, rnn_models());
  append(list, bert_models());
  append(list, gpt2_models());
  append(list, llama_models());
  append(list, t5_models());
  append(list, dlrm_models());
  return list;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> list = list_families();
  return list;
}

const std::vector<NamedModel>& models() {
  static const std::vector<NamedModel> list = list_models();
  return list;
}

}  // namespace forerun::zoo
