#include "compile/layout_rule.h"

#include <algorithm>
#include <string_view>

#include "derive/op_class.h"

namespace forerun::compile {
namespace {

constexpr int64_t kCallsPerConvolution = 300;
constexpr int64_t kNarrow = 64;
// Half of the operations a byte that PyTorch takes an H200 for: 535 TFLOP/s by Triton's count, 4,917 GB/s. On an A100 it is 77.
constexpr double kBalance = 54;
constexpr int64_t kAlignment = 8;

}  // namespace

bool lays_channels_last(const Graph& eager, const Round& round) {
  int64_t calls = 0;
  int64_t convolutions = 0;
  bool all_narrow = true;
  for (size_t i = round.first; i < round.end; ++i) {
    if (round.places[i - round.first] != Place::forward) continue;
    ++calls;
    const Op& op = eager.ops()[i];
    if (op_class(eager.name(op)) != OpClass::convolution || op.input_count < 2) continue;
    const std::span<const int64_t> weight = eager.shape(eager.inputs(op)[1]);
    if (weight.size() < 3) continue;
    ++convolutions;
    if (eager.attributes(op).get_int("groups", 1) > 1 && weight[1] > 1) return false;
    if (weight[0] * 2 <= weight[1] && weight[2] > 1) return false;
    all_narrow = all_narrow && weight[0] <= kNarrow && weight[1] <= kNarrow;
  }
  return convolutions > 0 && !all_narrow && calls < kCallsPerConvolution * convolutions;
}

bool pads_product(const Graph& eager, const Op& op) {
  const std::string_view base = base_name(eager.name(op));
  const size_t first = base == "addmm" ? 1 : 0;
  if ((base != "mm" && base != "addmm" && base != "bmm") || op.input_count < first + 2) return false;
  const TensorId left = eager.inputs(op)[first];
  const std::span<const int64_t> a = eager.shape(left);
  const std::span<const int64_t> b = eager.shape(eager.inputs(op)[first + 1]);
  if (size_of(eager.tensor(left).dtype) != 2 || a.size() < 2 || b.size() < 2) return false;
  const auto m = static_cast<double>(a[a.size() - 2]);
  const auto k = static_cast<double>(a[a.size() - 1]);
  const auto n = static_cast<double>(b[b.size() - 1]);
  const bool aligned =
      a[a.size() - 2] % kAlignment == 0 && a[a.size() - 1] % kAlignment == 0 && b[b.size() - 1] % kAlignment == 0;
  return !aligned && m * n * k > kBalance * (m * k + n * k + m * n);
}

}  // namespace forerun::compile
