#include "zoo/conv_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace forerun::zoo {

using Scope = ForwardBuilder::Scope;

TensorId activate(ForwardBuilder& b, Activation activation, TensorId x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return b.relu(x);
    case Activation::relu_: return b.relu_(x);
    case Activation::relu6_: return b.unary("aten.hardtanh_.default", x, {{"min_val", 0.0}, {"max_val", 6.0}});
    case Activation::silu_: return b.unary("aten.silu_.default", x);
    case Activation::hardswish_: return b.unary("aten.hardswish_.default", x);
    case Activation::sigmoid: return b.unary("aten.sigmoid.default", x);
    case Activation::hardsigmoid: return b.unary("aten.hardsigmoid.default", x);
  }
  CHECK(false, "activation out of range");
}

TensorId activate(ForwardBuilder& b, std::string_view name, Activation activation, TensorId x) {
  const Scope scope(b, name);
  return activate(b, activation, x);
}

TensorId max_pool(ForwardBuilder& b, std::string_view name, TensorId x, const PoolOptions& options) {
  const Scope scope(b, name);
  return b.max_pool2d(x, options);
}

TensorId global_pool(ForwardBuilder& b, std::string_view name, TensorId x) {
  const Scope scope(b, name);
  return b.adaptive_avg_pool2d(x, {1, 1});
}

TensorId dropout_in_place(ForwardBuilder& b, std::string_view name, TensorId x, double p) {
  const Scope scope(b, name);
  return b.unary("aten.dropout_.default", x, {{"p", p}, {"train", true}});
}

PoolOptions pooling(int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode) {
  return {
      .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {padding, padding}, .ceil_mode = ceil_mode};
}

TensorId conv_norm_activation(ForwardBuilder& b, std::string_view name, TensorId x, int64_t out,
                              const ConvNormOptions& options) {
  const Scope scope(b, name);
  const Conv2dOptions conv = {.kernel = options.kernel,
                              .stride = options.stride,
                              .padding = (options.kernel - 1) / 2,
                              .groups = options.groups,
                              .bias = false};
  x = Conv2d(b, "0", b.extent(x, 1), out, conv)(x);
  x = BatchNorm(b, "1", out, options.norm.eps, options.norm.momentum)(x);
  return activate(b, "2", options.activation, x);
}

TensorId numbered_conv_norm(ForwardBuilder& b, int64_t first, TensorId x, int64_t out, const Conv2dOptions& options,
                            bool relu, const NormOptions& norm) {
  x = Conv2d(b, std::to_string(first), b.extent(x, 1), out, options)(x);
  x = BatchNorm(b, std::to_string(first + 1), out, norm.eps, norm.momentum)(x);
  return relu ? activate(b, std::to_string(first + 2), Activation::relu_, x) : x;
}

TensorId squeeze_excitation(ForwardBuilder& b, std::string_view name, TensorId x, int64_t squeezed,
                            Activation activation, Activation scale) {
  const Scope scope(b, name);
  const int64_t channels = b.extent(x, 1);
  TensorId s = global_pool(b, "avgpool", x);
  s = Conv2d(b, "fc1", channels, squeezed, {.kernel = 1})(s);
  s = activate(b, "activation", activation, s);
  s = Conv2d(b, "fc2", squeezed, channels, {.kernel = 1})(s);
  s = activate(b, "scale_activation", scale, s);
  return b.mul(s, x);
}

namespace {

Conv2dOptions without_bias(Conv2dOptions options) {
  options.bias = false;
  return options;
}

constexpr double kInceptionEps = 0.001;

// Registers a layer inside the scope of the module that owns it.
template <class Layer, class... Arguments>
Layer inside(ForwardBuilder& b, std::string_view module, Arguments&&... arguments) {
  const Scope scope(b, module);
  return Layer(b, std::forward<Arguments>(arguments)...);
}

}  // namespace

BasicConv::BasicConv(ForwardBuilder& b, std::string_view name, int64_t in, int64_t out, Conv2dOptions options)
    : b_(b),
      path_(b.path_of(name)),
      conv_(inside<Conv2d>(b, name, "conv", in, out, without_bias(options))),
      norm_(inside<BatchNorm>(b, name, "bn", out, kInceptionEps)) {}

TensorId BasicConv::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  return b_.relu_(norm_(conv_(x)));
}

bool reasonable_depth(ForwardBuilder& b, double blocks) {
  constexpr double kMost = 4096;
  if (blocks <= kMost) return true;
  b.fail(fmt::format("the model would have {:.3g} blocks, more than {}", blocks, kMost), "build a shallower model");
  return false;
}

bool has_entries(ForwardBuilder& b, std::string_view name, const std::vector<int64_t>& list, size_t count) {
  if (list.size() == count) return true;
  b.fail(fmt::format("{} has {} entries, the model needs {}", name, list.size(), count),
         fmt::format("give {} numbers separated by commas", count));
  return false;
}

std::vector<Parameter> with_image_parameters(std::vector<Parameter> own, int64_t image, int64_t classes) {
  own.push_back({"batch", int64_t{32}, "images per iteration"});
  own.push_back({"channels", int64_t{3}, "channels of an image"});
  own.push_back({"image", image, "height and width of an image"});
  own.push_back({"classes", classes, "classes to tell apart"});
  return own;
}

TensorId image_input(ForwardBuilder& builder, const Configuration& configuration) {
  const int64_t image = configuration.integer("image");
  return builder.input("input", {configuration.integer("batch"), configuration.integer("channels"), image, image});
}

}  // namespace forerun::zoo
