#include "derive/tensor_parallel.h"

#include <map>

#include "derive/regrouped_graph.h"
#include "derive/tensor_splits.h"

namespace forerun::derive {
namespace {

class GroupGraph {
 public:
  GroupGraph(const Graph& forward, const TensorSplits& splits)
      : from_(forward), splits_(splits), to_(forward, [this](TensorId id) { return shape_of(id); }) {}

  Graph run() {
    for (size_t i = 0; i < from_.op_count(); ++i) add_op(i);
    return to_.finish();
  }

 private:
  [[nodiscard]] Shape shape_of(TensorId id) const {
    const auto shape = from_.shape(id);
    Shape local(shape.begin(), shape.end());
    const Split& split = splits_.tensors[id.value];
    if (split.any()) local[static_cast<size_t>(split.dim)] = split.local;
    return local;
  }

  void add_op(size_t index) {
    const Op& op = from_.ops()[index];
    const std::string& module = from_.module(op);
    const GroupRole role = splits_.roles[index];
    std::vector<TensorId> inputs = to_.inputs_now(op);
    if (role == GroupRole::columns || role == GroupRole::rows_of_experts) {
      const size_t operand = from_.name(op) == "aten.addmm.default" ? 1 : 0;
      const uint32_t read = from_.inputs(op)[operand].value;
      const auto [entered, fresh] = entered_.try_emplace(read);
      if (fresh) entered->second = to_.put_in(kEnterGroup, module, inputs[operand], to_.shape(inputs[operand]));
      inputs[operand] = entered->second;
    }
    to_.copy(op, inputs, attributes_of(op));
    if (role == GroupRole::rows || role == GroupRole::table) {
      const TensorId result = from_.outputs(op)[0];
      to_.replace(result, to_.put_in(kLeaveGroup, module, to_.now(result), to_.shape(to_.now(result))));
    }
  }

  // Those that state extents state the local ones.
  [[nodiscard]] Attributes attributes_of(const Op& op) const {
    const Attributes& given = from_.attributes(op);
    if (op.output_count == 0) return given;
    const TensorId y = from_.outputs(op)[0];
    const Split& split = splits_.tensors[y.value];
    if (!split.any()) return given;
    const auto dim = static_cast<size_t>(split.dim);
    Attributes local;
    for (const auto& [key, value] : given.entries()) {
      if (key == "size" || key == "shape") {
        Shape sizes = given.get_ints(key);
        if (dim < sizes.size() && sizes[dim] != -1) sizes[dim] = split.local;
        local.set(key, sizes);
      } else if (key == "split_sizes" && splits_here(op, given)) {
        Shape sizes;
        for (const TensorId part : from_.outputs(op)) sizes.push_back(splits_.tensors[part.value].local);
        local.set(key, sizes);
      } else if (key == "split_size" && splits_here(op, given)) {
        local.set(key, split.local);
      } else {
        local.set(key, value);
      }
    }
    return local;
  }

  // Whether the op cuts the dimension that the group shares.
  [[nodiscard]] bool splits_here(const Op& op, const Attributes& attributes) const {
    const TensorId x = from_.inputs(op)[0];
    const auto rank = static_cast<int64_t>(from_.shape(x).size());
    const int64_t dim = attributes.get_int("dim", 0);
    return splits_.tensors[x.value].dim == (dim < 0 ? dim + rank : dim);
  }

  const Graph& from_;
  const TensorSplits& splits_;
  RegroupedGraph to_;
  std::map<uint32_t, TensorId> entered_;  // whole tensors as layers split by columns read them
};

}  // namespace

Result<Graph> tensor_parallel(const Graph& forward, int64_t gpus) {
  if (gpus == 1) return forward;
  const auto splits = tensor_splits(forward, gpus);
  if (!splits) return splits.error();
  return GroupGraph(forward, *splits).run();
}

}  // namespace forerun::derive
