#include "memory/build_order.h"

#include <string_view>
#include <unordered_map>

namespace forerun {
namespace {

struct Module {
  std::vector<uint32_t> children;  // in the order of their first names
  std::unordered_map<std::string_view, uint32_t> by_name;
  std::vector<uint32_t> parameters, buffers;  // storages
};

class ModuleTree {
 public:
  ModuleTree() : modules_(1) {}

  void add(std::string_view name, uint32_t storage, bool parameter) {
    uint32_t at = 0;
    for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
      at = child(at, name.substr(0, dot));
      name.remove_prefix(dot + 1);
    }
    (parameter ? modules_[at].parameters : modules_[at].buffers).push_back(storage);
  }

  // Children first, then what the module itself holds.
  [[nodiscard]] std::vector<uint32_t> storages() const {
    std::vector<uint32_t> found;
    std::vector<std::pair<uint32_t, size_t>> way = {{0, 0}};
    while (!way.empty()) {
      const Module& module = modules_[way.back().first];
      if (way.back().second < module.children.size()) {
        const uint32_t next = module.children[way.back().second++];
        way.emplace_back(next, 0);
        continue;
      }
      found.insert(found.end(), module.parameters.begin(), module.parameters.end());
      found.insert(found.end(), module.buffers.begin(), module.buffers.end());
      way.pop_back();
    }
    return found;
  }

 private:
  uint32_t child(uint32_t parent, std::string_view name) {
    const auto [found, isnew] = modules_[parent].by_name.try_emplace(name, static_cast<uint32_t>(modules_.size()));
    const uint32_t number = found->second;
    if (isnew) {
      modules_[parent].children.push_back(number);
      modules_.emplace_back();
    }
    return number;
  }

  std::vector<Module> modules_;  // the root first
};

using Parts = std::unordered_map<uint32_t, std::vector<int64_t>>;

// A recurrent layer reads its weights as views of one storage, and that storage as a whole.
Parts find_parts(const Graph& graph) {
  Parts parts;
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::forward || graph.name(op) != "aten._cudnn_rnn.default") continue;
    Parts of_op;
    for (const TensorId input : graph.inputs(op)) {
      const StorageId storage = graph.tensor(input).storage;
      const int64_t bytes = graph.bytes_of(input).value;
      if (graph.storage(storage).root != Root::parameter || bytes >= graph.storage(storage).bytes.value) continue;
      of_op[storage.value].push_back(bytes);
    }
    parts.merge(of_op);  // a layer may run more than once
  }
  return parts;
}

}  // namespace

std::vector<BuildStep> build_order(const Graph& graph) {
  ModuleTree tree;
  for (const Root kind : {Root::parameter, Root::buffer}) {
    for (uint32_t id = 0; id < graph.storages().size(); ++id) {
      const Storage& storage = graph.storages()[id];
      if (storage.root != kind) continue;
      const std::string_view name =
          storage.root_name.valid() ? std::string_view(graph.names()[storage.root_name]) : std::string_view();
      tree.add(name, id, kind == Root::parameter);
    }
  }
  const Parts parts = find_parts(graph);
  std::vector<BuildStep> steps;
  for (const uint32_t id : tree.storages()) {
    const auto found = parts.find(id);
    steps.push_back({StorageId(id), found == parts.end() ? std::vector<int64_t>() : found->second});
  }
  return steps;
}

std::vector<StorageId> gradient_order(const Graph& graph) {
  std::vector<bool> wanted(graph.storages().size(), false);
  std::vector<StorageId> order;
  for (const Op& op : graph.ops()) {
    const bool updates = op.phase == Phase::update;
    for (const TensorId tensor : updates ? graph.inputs(op) : graph.outputs(op)) {
      const StorageId storage = graph.tensor(tensor).storage;
      if (graph.storage(storage).root != Root::none) continue;
      if (updates && wanted[storage.value]) order.push_back(storage);
      wanted[storage.value] = op.phase == Phase::backward;
    }
  }
  return order;
}

}  // namespace forerun
