// GoogLeNet as torchvision builds it (Szegedy et al. 2014, with batch norm; its "5x5" branch is 3x3).
//
// The input is not re-normalized (torchvision's transform_input off). Auxiliary heads, where switched on, are further
// results after the logits.
#include <array>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct InceptionWidths {
  const char* name;
  int64_t in, one, reduce3, three, reduce5, five, pool;
};

constexpr std::array<InceptionWidths, 9> kBlocks = {{{"inception3a", 192, 64, 96, 128, 16, 32, 32},
                                                     {"inception3b", 256, 128, 128, 192, 32, 96, 64},
                                                     {"inception4a", 480, 192, 96, 208, 16, 48, 64},
                                                     {"inception4b", 512, 160, 112, 224, 24, 64, 64},
                                                     {"inception4c", 512, 128, 128, 256, 24, 64, 64},
                                                     {"inception4d", 512, 112, 144, 288, 32, 64, 64},
                                                     {"inception4e", 528, 256, 160, 320, 32, 128, 128},
                                                     {"inception5a", 832, 256, 160, 320, 32, 128, 128},
                                                     {"inception5b", 832, 384, 192, 384, 48, 128, 128}}};

class InceptionBlock {
 public:
  InceptionBlock(ForwardBuilder& b, const InceptionWidths& w) : b_(b), path_(b.path_of(w.name)) {
    const Scope scope(b, w.name);
    convs_.emplace_back(b, "branch1", w.in, w.one, Conv2dOptions{.kernel = 1});
    add(b, "branch2", "0", w.in, w.reduce3, {.kernel = 1});
    add(b, "branch2", "1", w.reduce3, w.three, {.kernel = 3, .padding = 1});
    add(b, "branch3", "0", w.in, w.reduce5, {.kernel = 1});
    add(b, "branch3", "1", w.reduce5, w.five, {.kernel = 3, .padding = 1});
    add(b, "branch4", "1", w.in, w.pool, {.kernel = 1});
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId first = convs_[0](x);
    const TensorId second = convs_[2](convs_[1](x));
    const TensorId third = convs_[4](convs_[3](x));
    const TensorId fourth = convs_[5](max_pool(b_, "branch4.0", x, pooling(3, 1, 1, true)));
    return b_.cat({first, second, third, fourth}, 1);
  }

 private:
  void add(ForwardBuilder& b, const char* branch, const char* name, int64_t in, int64_t out,
           const Conv2dOptions& options) {
    const Scope scope(b, branch);
    convs_.emplace_back(b, name, in, out, options);
  }

  ForwardBuilder& b_;
  std::string path_;
  std::vector<BasicConv> convs_;
};

// The auxiliary classifiers of training: registered last, called in the middle.
class AuxiliaryHead {
 public:
  AuxiliaryHead(ForwardBuilder& b, std::string_view name, int64_t in, int64_t classes) : b_(b), path_(b.path_of(name)) {
    const Scope scope(b, name);
    conv_.emplace_back(b, "conv", in, 128, Conv2dOptions{.kernel = 1});
    linear_.emplace_back(b, "fc1", 2048, 1024);
    linear_.emplace_back(b, "fc2", 1024, classes);
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.flatten(conv_[0](b_.adaptive_avg_pool2d(x, {4, 4})), 1);
    x = b_.relu_(linear_[0](x));
    x = Dropout(b_, "dropout", 0.7)(x);
    return linear_[1](x);
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  std::vector<BasicConv> conv_;
  std::vector<Linear> linear_;
};

void build_googlenet(ForwardBuilder& b, const Configuration& c) {
  const int64_t classes = c.integer("classes");
  const BasicConv conv1(b, "conv1", c.integer("channels"), 64, {.kernel = 7, .stride = 2, .padding = 3});
  const BasicConv conv2(b, "conv2", 64, 64, {.kernel = 1});
  const BasicConv conv3(b, "conv3", 64, 192, {.kernel = 3, .padding = 1});
  std::vector<InceptionBlock> blocks;
  for (const InceptionWidths& widths : kBlocks) blocks.emplace_back(b, widths);
  std::vector<AuxiliaryHead> heads;
  if (c.flag("aux")) {
    heads.emplace_back(b, "aux1", 512, classes);
    heads.emplace_back(b, "aux2", 528, classes);
  }
  const Linear fc(b, "fc", 1024, classes);

  TensorId x = image_input(b, c);
  x = max_pool(b, "maxpool1", conv1(x), pooling(3, 2, 0, true));
  x = max_pool(b, "maxpool2", conv3(conv2(x)), pooling(3, 2, 0, true));
  std::vector<TensorId> auxiliary;
  for (size_t i = 0; i < blocks.size(); ++i) {
    x = blocks[i](x);
    if (i == 1) x = max_pool(b, "maxpool3", x, pooling(3, 2, 0, true));
    if (i == 6) x = max_pool(b, "maxpool4", x, pooling(2, 2, 0, true));
    if (!heads.empty() && i == 2) auxiliary.push_back(heads[0](x));
    if (!heads.empty() && i == 5) auxiliary.push_back(heads[1](x));
  }
  x = b.flatten(global_pool(b, "avgpool", x), 1);
  x = Dropout(b, "dropout", c.real("dropout"))(x);
  b.result(fc(x));
  for (const TensorId logits : auxiliary) b.result(logits);
}

}  // namespace

Family googlenet_family() {
  return {.name = "googlenet",
          .description = "GoogLeNet with batch norm (torchvision)",
          .parameters = with_image_parameters({
              {"aux", false, "with the two auxiliary heads"},
              {"dropout", 0.2, "dropout before the classifier"},
          }),
          .build = build_googlenet};
}

std::vector<NamedModel> googlenet_models() { return {{"googlenet", "googlenet", {}}}; }

}  // namespace forerun::zoo
