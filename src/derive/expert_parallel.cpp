#include "derive/expert_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "derive/regrouped_graph.h"

namespace forerun::derive {
namespace {

constexpr size_t kGiven = SIZE_MAX;

class ExpertFinder {
 public:
  explicit ExpertFinder(const Graph& forward) : graph_(forward), made_by_(forward.tensors().size(), kGiven) {
    for (size_t i = 0; i < graph_.op_count(); ++i) {
      for (const TensorId id : graph_.outputs(graph_.ops()[i])) made_by_[id.value] = i;
    }
    for (size_t i = 0; i < graph_.op_count(); ++i) {
      if (is_expert_product(graph_.name(graph_.ops()[i]))) visit(i);
    }
  }

  std::map<uint32_t, int64_t> experts;  // by tensor: as many are its first extent
  std::map<size_t, bool> swaps;         // ops whose first operand is swapped before (true), or whose result behind

 private:
  // Weights are read through a transposition; rows may be cast on their way.
  void visit(size_t index) {
    const Op& op = graph_.ops()[index];
    const TensorId weight = graph_.inputs(op)[1];
    for (TensorId id = weight;;) {
      experts[id.value] = graph_.shape(id)[0];
      const size_t maker = made_by_[id.value];
      if (maker == kGiven || graph_.ops()[maker].input_count == 0) break;
      id = graph_.inputs(graph_.ops()[maker])[0];
    }
    const auto [products, first] = products_.try_emplace(graph_.module(op), 0);
    if (++products->second % 2 == 0) {
      swaps[index] = false;
      return;
    }
    const size_t cast = made_by_[graph_.inputs(op)[0].value];
    const bool is_cast = cast != kGiven && graph_.name(graph_.ops()[cast]) == "aten.type_as.default";
    swaps[is_cast ? cast : index] = true;
  }

  const Graph& graph_;
  std::vector<size_t> made_by_;          // by tensor: the op
  std::map<std::string, int> products_;  // by module
};

}  // namespace

int64_t experts_of(const Graph& forward) {
  const ExpertFinder found(forward);
  return found.experts.empty() ? 1 : found.experts.begin()->second;
}

bool is_expert_product(std::string_view op_name) { return op_name == "aten._grouped_mm.default"; }

std::optional<size_t> dealt_operand(std::string_view op_name) {
  if (is_expert_product(op_name)) return 1;
  if (op_name == "aten._embedding_bag.default") return 0;
  return std::nullopt;
}

int64_t summed_tables(const Graph& forward) {
  return std::count_if(forward.ops().begin(), forward.ops().end(),
                       [&](const Op& op) { return forward.name(op) == "aten.embedding_bag.default"; });
}

Result<Graph> expert_parallel(const Graph& forward, int64_t gpus) {
  if (gpus == 1) return forward;
  const ExpertFinder found(forward);
  if (found.experts.empty()) {
    return Error{"the model has no experts that could be dealt out", "expert parallelism", "leave out ep"};
  }
  const int64_t experts = found.experts.begin()->second;
  if (experts % gpus != 0) {
    int64_t below = 1, above = 0;
    for (int64_t number = 2; number <= experts && above == 0; ++number) {
      if (experts % number != 0) continue;
      (number < gpus ? below : above) = number;
    }
    return Error{fmt::format("{} experts cannot be dealt out to {} GPUs", experts, gpus), "expert parallelism",
                 above > 0 ? fmt::format("choose ep={} or ep={}", below, above) : fmt::format("choose ep={}", below)};
  }
  RegroupedGraph graph(forward, [&](TensorId id) {
    const auto extents = forward.shape(id);
    Shape shape(extents.begin(), extents.end());
    if (found.experts.contains(id.value)) shape[0] /= gpus;
    return shape;
  });
  for (size_t i = 0; i < forward.op_count(); ++i) {
    const Op& op = forward.ops()[i];
    std::vector<TensorId> inputs = graph.inputs_now(op);
    const auto swap = found.swaps.find(i);
    const auto swapped = [&](TensorId id) { return graph.put_in(kSwapRows, forward.module(op), id, graph.shape(id)); };
    if (swap != found.swaps.end() && swap->second) inputs[0] = swapped(inputs[0]);
    graph.copy(op, inputs, forward.attributes(op));
    if (swap != found.swaps.end() && !swap->second) {
      const TensorId result = forward.outputs(op)[0];
      graph.replace(result, swapped(graph.now(result)));
    }
  }
  return graph.finish();
}

}  // namespace forerun::derive
