#include "derive/multi_tensor.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "derive/op_class.h"
#include "derive/work.h"

namespace forerun {
namespace {

constexpr int64_t kChunk = 65536;                                       // elements
constexpr int64_t kMostChunks = 320;                                    // of a launch
constexpr std::array<int64_t, 5> kMostTensors = {110, 64, 48, 36, 30};  // of a launch, by lists
constexpr int64_t kMostTensorsWithScalars = 96;                         // of one list
constexpr int64_t kBesideNorm = 2;  // kernels: results are filled with zeros, and what blocks left is put together

}  // namespace

int64_t multi_tensor_launches(std::span<const int64_t> sizes, int64_t lists, bool scalars) {
  const size_t depth = std::clamp<size_t>(static_cast<size_t>(std::max<int64_t>(lists, 1)), 1, kMostTensors.size());
  const int64_t most = scalars && depth == 1 ? kMostTensorsWithScalars : kMostTensors[depth - 1];
  int64_t launches = 0;
  int64_t tensors = 0;  // of the next launch
  int64_t chunks = 0;
  for (const int64_t size : sizes) {
    if (size <= 0) continue;
    ++tensors;
    int64_t left = (size + kChunk - 1) / kChunk;
    while (left > 0) {
      const int64_t taken = std::min(left, kMostChunks - chunks);
      left -= taken;
      chunks += taken;
      if (chunks < kMostChunks && (left > 0 || tensors < most)) continue;
      ++launches;
      chunks = 0;
      tensors = left > 0 ? 1 : 0;
    }
  }
  return launches + (chunks > 0 ? 1 : 0);
}

int64_t multi_tensor_launches(const Graph& graph, const Op& op) {
  const std::string& name = graph.name(op);
  const std::string_view base = base_name(name);
  if (op_class(name) != OpClass::optimizer) return 0;
  const std::span<const TensorId> inputs = graph.inputs(op);
  const auto count = static_cast<int64_t>(inputs.size());
  int64_t lists = foreach_lists(name, count, graph.attributes(op).get_bool("amsgrad", false));
  const auto entries = static_cast<size_t>(count / std::max<int64_t>(lists, 1));
  std::vector<int64_t> sizes;
  sizes.reserve(entries);
  for (const TensorId id : inputs.first(std::min(entries, inputs.size()))) sizes.push_back(graph.element_count(id));
  const bool norm = base == "_foreach_norm";
  if (base.starts_with("_fused_adam")) {
    --lists;  // step counters are no arguments of the chunks
  } else if (!norm && !graph.outputs(op).empty()) {
    ++lists;
  }
  const bool scalars = overload_name(name) == "ScalarList";
  return multi_tensor_launches(sizes, lists, scalars) + (norm ? kBesideNorm : 0);
}

}  // namespace forerun
