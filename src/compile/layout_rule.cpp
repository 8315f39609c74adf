#include "compile/layout_rule.h"

#include <algorithm>
#include <string_view>

#include "derive/op_class.h"

namespace forerun::compile {
namespace {

constexpr int64_t kNodesEach = 300;  // of the graph for each convolution
constexpr int64_t kNarrow = 64;      // channels
constexpr int64_t kNodesOfNorm = 8;  // that one is taken apart into

}  // namespace

bool puts_channels_last(const Graph& graph, const Round& round) {
  int64_t nodes = static_cast<int64_t>(graph.parameter_tensors());
  int64_t convolutions = 0;
  bool narrow = true;
  for (size_t i = round.first; i < round.end; ++i) {
    if (round.places[i - round.first] != Place::forward) continue;
    const Op& op = graph.ops()[i];
    const std::string_view name = graph.name(op);
    nodes += op_class(name) == OpClass::normalization ? kNodesOfNorm : 1;
    if (op_class(name) != OpClass::convolution || op.input_count < 2) continue;
    const std::span<const int64_t> weight = graph.shape(graph.inputs(op)[1]);
    if (weight.size() < 3) continue;
    ++convolutions;
    if (graph.attributes(op).get_int("groups", 1) > 1 && weight[1] > 1) return false;
    if (weight[0] * 2 <= weight[1] && weight[2] > 1) return false;
    narrow = narrow && weight[0] <= kNarrow && weight[1] <= kNarrow;
  }
  return convolutions > 0 && !narrow && nodes < kNodesEach * convolutions;
}

std::vector<size_t> dimension_order(const Graph& graph, TensorId id) {
  const std::span<const int64_t> shape = graph.shape(id);
  const std::span<const int64_t> strides = graph.strides(id);
  std::vector<size_t> order;
  for (size_t dim = 0; dim < std::min(shape.size(), strides.size()); ++dim) {
    if (shape[dim] > 1) order.push_back(dim);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  return order;
}

}  // namespace forerun::compile
