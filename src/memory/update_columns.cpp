#include "memory/update_columns.h"

#include <algorithm>
#include <numeric>

#include "derive/work.h"

namespace forerun {

UpdateColumns::UpdateColumns(const Graph& graph) : parents_(graph.storages().size()) {
  std::iota(parents_.begin(), parents_.end(), 0U);
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::update) continue;
    const std::string& name = graph.name(op);
    const bool listed = name.starts_with("aten._foreach_") || name.starts_with("aten._fused_");
    const auto inputs = graph.inputs(op);
    const auto outputs = graph.outputs(op);
    const auto storage = [&](TensorId id) { return graph.tensor(id).storage.value; };
    if (!listed) {
      // What lies on the host is shared by all parameters: learning rates, counters.
      uint32_t first = UINT32_MAX;
      for (const auto operands : {inputs, outputs}) {
        for (const TensorId id : operands) {
          if (!graph.storages()[storage(id)].on_gpu) continue;
          if (first == UINT32_MAX) first = storage(id);
          tie(first, storage(id));
        }
      }
      continue;
    }
    const bool amsgrad = graph.attributes(op).get_bool("amsgrad", false);
    const auto lists =
        static_cast<size_t>(std::max<int64_t>(1, foreach_lists(name, static_cast<int64_t>(inputs.size()), amsgrad)));
    const size_t entries = inputs.size() / lists;
    if (entries == 0) continue;
    for (size_t i = entries; i < entries * lists; ++i) tie(storage(inputs[i % entries]), storage(inputs[i]));
    for (size_t i = 0; i < std::min(outputs.size(), entries); ++i) tie(storage(inputs[i]), storage(outputs[i]));
  }
}

uint32_t UpdateColumns::column(StorageId storage) const {
  uint32_t root = storage.value;
  while (parents_[root] != root) root = parents_[root];
  return root;
}

void UpdateColumns::tie(uint32_t a, uint32_t b) {
  const uint32_t first = column(StorageId(a));
  const uint32_t second = column(StorageId(b));
  // Paths stay short: each walk over a path halves it.
  for (uint32_t* at : {&a, &b}) {
    while (parents_[*at] != *at) {
      parents_[*at] = parents_[parents_[*at]];
      *at = parents_[*at];
    }
  }
  parents_[std::max(first, second)] = std::min(first, second);
}

std::vector<Gradient> gradients_of(const Graph& graph) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> made(graph.storages().size(), kNone);
  std::vector<bool> used(graph.storages().size(), false);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::backward) {
      for (const TensorId id : graph.outputs(op)) made[graph.tensor(id).storage.value] = i;
    } else if (op.phase == Phase::update) {
      for (const TensorId id : graph.inputs(op)) used[graph.tensor(id).storage.value] = true;
    }
  }
  std::vector<Gradient> gradients;
  for (size_t id = 0; id < made.size(); ++id) {
    const Storage& storage = graph.storages()[id];
    if (made[id] != kNone && used[id] && storage.root == Root::none && storage.on_gpu) {
      gradients.push_back({StorageId(id), made[id]});
    }
  }
  std::stable_sort(gradients.begin(), gradients.end(),
                   [](const Gradient& a, const Gradient& b) { return a.made < b.made; });
  return gradients;
}

}  // namespace forerun
