// What torchvision's convolutional models share: modules without parameters, and convolution + batch norm + activation.
//
// Where a model calls its layers in the order it registers them, a block registers and calls in one go (a function);
// BasicConv is a class because GoogLeNet registers its auxiliary heads later than it calls them.
#pragma once

#include <string>
#include <string_view>

#include "graph/forward_builder.h"
#include "zoo/families.h"
#include "zoo/layers.h"

namespace forerun::zoo {

// The elementwise functions of these models; the ones with a trailing underscore work in place.
enum class Activation { none, relu, relu_, relu6_, silu_, hardswish_, sigmoid, hardsigmoid };

TensorId activate(ForwardBuilder& b, Activation activation, TensorId x);

// Modules without parameters, entered by name: what they append belongs to `name` in the current scope.
TensorId activate(ForwardBuilder& b, std::string_view name, Activation activation, TensorId x);
TensorId max_pool(ForwardBuilder& b, std::string_view name, TensorId x, const PoolOptions& options);
TensorId global_pool(ForwardBuilder& b, std::string_view name, TensorId x);  // nn.AdaptiveAvgPool2d(1)
TensorId dropout_in_place(ForwardBuilder& b, std::string_view name, TensorId x, double p);

// Square max pooling of the usual form.
PoolOptions pooling(int64_t kernel, int64_t stride, int64_t padding = 0, bool ceil_mode = false);

struct NormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
};

struct ConvNormOptions {
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t groups = 1;
  Activation activation = Activation::relu_;
  NormOptions norm = {};
};

// torchvision.ops.Conv2dNormActivation: modules "0" (no bias, padding keeps the size), "1", "2".
TensorId conv_norm_activation(ForwardBuilder& b, std::string_view name, TensorId x, int64_t out,
                              const ConvNormOptions& options);

// Convolution and batch norm as modules `first` and `first + 1` of the current sequence, then ReLU where wanted.
TensorId numbered_conv_norm(ForwardBuilder& b, int64_t first, TensorId x, int64_t out, const Conv2dOptions& options,
                            bool relu, const NormOptions& norm = {});

// torchvision.ops.SqueezeExcitation: scales x by two 1x1 convolutions of its spatial mean.
TensorId squeeze_excitation(ForwardBuilder& b, std::string_view name, TensorId x, int64_t squeezed,
                            Activation activation, Activation scale);

// Convolution without bias, batch norm (eps 0.001), ReLU in place outside any module of its own: the Inception models.
class BasicConv {
 public:
  BasicConv(ForwardBuilder& b, std::string_view name, int64_t in, int64_t out, Conv2dOptions options);
  TensorId operator()(TensorId x) const;

 private:
  ForwardBuilder& b_;
  std::string path_;
  Conv2d conv_;
  BatchNorm norm_;
};

// False, with the error recorded, where a model would have more than some thousands of blocks.
bool reasonable_depth(ForwardBuilder& b, double blocks);

// False, with the error recorded, where a list does not have the number of entries the model has stages.
bool has_entries(ForwardBuilder& b, std::string_view name, const std::vector<int64_t>& list, size_t count);

}  // namespace forerun::zoo
