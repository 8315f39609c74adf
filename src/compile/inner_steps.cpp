#include "compile/inner_steps.h"

#include <algorithm>
#include <array>
#include <utility>

namespace forerun::compile {
namespace {

using Row = std::pair<std::string_view, InnerSteps>;

constexpr std::array kSteps = {
    Row{"gelu", {8, true}},
    Row{"gelu_backward", {16, true}},
    Row{"silu", {5, true}},
    Row{"silu_backward", {7, true}},
    Row{"mish", {7, true}},
    Row{"mish_backward", {12, true}},
    Row{"hardswish", {9, true}},
    Row{"hardswish_backward", {12, true}},
    Row{"softplus", {5, true}},
    Row{"softplus_backward", {7, true}},
    Row{"elu", {7, true}},
    Row{"elu_backward", {9, true}},
    Row{"leaky_relu", {5, true}},
    Row{"leaky_relu_backward", {5, false}},
    Row{"hardtanh", {4, false}},
    Row{"hardtanh_backward", {7, true}},
    Row{"clamp", {4, false}},
    Row{"threshold_backward", {3, false}},
    Row{"hardsigmoid", {8, false}},
    Row{"tanh_backward", {4, false}},
    Row{"sigmoid_backward", {4, true}},
    Row{"_softmax", {3, false}},
    Row{"_softmax_backward_data", {3, false}},
    Row{"_log_softmax", {3, false}},
    Row{"_log_softmax_backward_data", {3, false}},
    Row{"native_dropout", {4, false}},
    Row{"native_dropout_backward", {4, false}},
    Row{"native_layer_norm", {6, false}},
    Row{"native_layer_norm_backward", {11, false}},
    Row{"native_group_norm", {4, false}},
    Row{"native_group_norm_backward", {8, false}},
    Row{"native_batch_norm", {6, false}},
    Row{"native_batch_norm_backward", {4, false}},
    Row{"cudnn_batch_norm", {6, false}},
    Row{"cudnn_batch_norm_backward", {4, false}},
    Row{"nll_loss_backward", {12, false}},
    Row{"nll_loss2d_backward", {12, false}},
};
// With one input, the other is a number, which counts as well.
constexpr std::array<std::string_view, 12> kOfTwo = {"add", "sub", "rsub", "mul", "div", "masked_fill",
                                                     "eq",  "ne",  "gt",   "ge",  "lt",  "le"};
constexpr int64_t kMostLooks = 1 << 20;
constexpr InnerSteps kGeluByTanh = {14, true};
constexpr InnerSteps kGeluByTanhBackward = {23, true};

}  // namespace

InnerSteps inner_steps(std::string_view base, size_t inputs, bool by_tanh) {
  if (by_tanh && base == "gelu") return kGeluByTanh;
  if (by_tanh && base == "gelu_backward") return kGeluByTanhBackward;
  for (const auto& [name, steps] : kSteps) {
    if (name == base) return steps;
  }
  const bool with_number = inputs == 1 && std::find(kOfTwo.begin(), kOfTwo.end(), base) != kOfTwo.end();
  return {.count = with_number ? 2 : 1};
}

int window_looks(std::string_view name, const Attributes& attributes) {
  Shape window = attributes.get_ints("kernel_size");
  if (window.empty() || name.find("pool") == std::string_view::npos) return 0;
  const bool backward = name.find("backward") != std::string_view::npos;
  if (window.size() == 1 && name.find("1d") == std::string_view::npos) window.push_back(window[0]);
  const Shape stride = attributes.get_ints("stride");
  int64_t looks = 1;
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t step = stride.empty() ? window[i] : std::max<int64_t>(stride[std::min(i, stride.size() - 1)], 1);
    looks *= backward ? (window[i] + step - 1) / step : std::max<int64_t>(window[i], 1);
  }
  return static_cast<int>(std::min<int64_t>(looks, kMostLooks));
}

}  // namespace forerun::compile
