#include "derive/checkpoint_stretches.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "derive/context_parallel.h"
#include "derive/expert_parallel.h"
#include "derive/op_class.h"
#include "derive/tensor_parallel.h"

namespace forerun::derive {
namespace {

// "3", or "encoder_layer_3" as torchvision calls them.
bool is_number_in_list(std::string_view part) {
  const size_t digits = part.find_last_not_of("0123456789") + 1;  // 0 where there is nothing else
  return digits < part.size() && (digits == 0 || part[digits - 1] == '_');
}

// The module's name up to the first part that numbers it: the layer of a list that it belongs to, or is.
std::string_view layer_of(std::string_view module) {
  for (size_t begin = 0; begin < module.size();) {
    const size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view part = module.substr(begin, end - begin);
    if (is_number_in_list(part)) return module.substr(0, end);
    begin = end + 1;
  }
  return {};
}

// How an op of the forward graph takes part in the backward pass.
enum class Keeps : uint8_t { nothing, operands, results };

Keeps what_is_kept(const Graph& forward, const Op& op) {
  const std::string_view name = forward.name(op);
  const bool alone = op.input_count == 1;  // with a number in the place of the other operand
  if (name == "aten.add.Tensor" || name == "aten.sub.Tensor" || name == "aten.to.dtype" ||
      name == "aten.type_as.default" || name == "aten.contiguous.default" || name == "aten.neg.default" ||
      name == kEnterGroup || name == kLeaveGroup || name == kSwapRows || name == kGatherSequence ||
      op_class(name) == OpClass::view) {
    return Keeps::nothing;
  }
  if (name == "aten.mul.Tensor" || name == "aten.div.Tensor") return alone ? Keeps::nothing : Keeps::operands;
  if (name.starts_with("aten.dropout")) {
    return forward.attributes(op).get_double("p", 0.5) == 0 ? Keeps::nothing : Keeps::results;
  }
  static constexpr std::array kOperands = {"aten.linear.default", "aten.matmul.default",      "aten.addmm.default",
                                           "aten.bmm.default",    "aten.convolution.default", "aten.gelu.default",
                                           "aten.silu.default"};
  return std::find(kOperands.begin(), kOperands.end(), name) != kOperands.end() ? Keeps::operands : Keeps::results;
}

void find_last(const Graph& forward, const std::function<bool(size_t)>& keeps_nothing, Stretch& stretch) {
  stretch.last = stretch.end;
  for (size_t i = stretch.end; i-- > stretch.begin;) {
    const Keeps kept = what_is_kept(forward, forward.ops()[i]);
    if (kept == Keeps::nothing || (keeps_nothing && keeps_nothing(i))) continue;
    stretch.last = i;
    stretch.last_runs = kept == Keeps::results;
    return;
  }
}

}  // namespace

std::vector<Stretch> checkpoint_stretches(const Graph& forward, const std::function<bool(size_t op)>& keeps_nothing) {
  std::vector<Stretch> stretches;
  for (size_t i = 0; i < forward.op_count();) {
    const std::string_view layer = layer_of(forward.module(forward.ops()[i]));
    size_t end = i + 1;
    bool has_parts = forward.module(forward.ops()[i]).size() > layer.size();
    while (end < forward.op_count() && layer_of(forward.module(forward.ops()[end])) == layer) {
      has_parts = has_parts || forward.module(forward.ops()[end]).size() > layer.size();
      ++end;
    }
    if (!layer.empty() && has_parts) {
      stretches.push_back({.begin = i, .end = end});
      find_last(forward, keeps_nothing, stretches.back());
    }
    i = end;
  }
  return stretches;
}

bool is_kept_by_selective(std::string_view dispatched) {
  const OpClass cls = op_class(dispatched);
  return cls == OpClass::gemm || cls == OpClass::convolution || cls == OpClass::attention;
}

}  // namespace forerun::derive
