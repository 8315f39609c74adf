#include "scale/graph_cost.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "graph/dtype.h"
#include "graph/graph.h"
#include "graph/op_modules.h"

namespace forerun::scale {
namespace {

std::string block_name(const std::string& module) {
  const std::string_view block = block_of(module);
  if (!block.empty()) return std::string(block);
  return module.substr(0, module.find('.'));
}

// Blocks in the order of the forward pass, and by name.
class BlockIndex {
 public:
  explicit BlockIndex(const Graph& graph) {
    for (const Op& op : graph.ops()) {
      if (op.phase != Phase::forward) continue;
      const std::string name = block_name(graph.module(op));
      if (!name.empty()) place(name);
    }
    if (blocks_.empty()) place("model");
  }

  // The block of that name; where there is none, the last one (the loss, ops outside modules).
  Block& of(const std::string& name) {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? blocks_.back() : blocks_[found->second];
  }
  std::vector<Block>& blocks() { return blocks_; }

 private:
  void place(const std::string& name) {
    const auto [at, fresh] = by_name_.try_emplace(name, blocks_.size());
    if (!fresh) return;
    blocks_.emplace_back();
    blocks_.back().name = name;
  }

  std::vector<Block> blocks_;
  std::unordered_map<std::string, size_t> by_name_;
};

void add_times(const Graph& graph, std::span<const OpCost> costs, const HostCosts& host, BlockIndex& index) {
  const std::vector<NameId> modules = op_modules(graph);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::update) continue;
    Block& block = index.of(block_name(graph.names()[modules[i]]));
    const Nanoseconds time = std::max(costs[i].gpu - costs[i].overlapped, host.ops[i]);
    (op.phase == Phase::forward ? block.forward : block.backward) += time;
  }
}

void add_parameters(const Graph& graph, BlockIndex& index) {
  std::vector<bool> seen(graph.storages().size());
  for (const Tensor& tensor : graph.tensors()) {
    const Storage& storage = graph.storage(tensor.storage);
    if (storage.root != Root::parameter || seen[tensor.storage.value]) continue;
    seen[tensor.storage.value] = true;
    index.of(block_name(graph.names()[storage.root_name])).parameters += storage.bytes.value / size_of(tensor.dtype);
  }
}

void add_memory(const Graph& graph, BlockIndex& index) {
  std::vector<bool> seen(graph.storages().size());
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::forward) continue;
    Block& block = index.of(block_name(graph.module(op)));
    for (const TensorId id : graph.outputs(op)) {
      const StorageId at = graph.tensor(id).storage;
      const Storage& storage = graph.storage(at);
      if (storage.root == Root::none && storage.on_gpu) block.output = storage.bytes;
      if (storage.root != Root::none || seen[at.value] || !storage.on_gpu) continue;
      seen[at.value] = true;
      const bool kept = !storage.freed_before.valid() || graph.op(storage.freed_before).phase != Phase::forward;
      (kept ? block.saved : block.transient) += storage.bytes;
    }
  }
}

void scale_to(std::vector<Block>& blocks, Nanoseconds Block::*field, Nanoseconds total) {
  Nanoseconds sum;
  for (const Block& block : blocks) sum += block.*field;
  if (sum.value <= 0) return;
  const double factor = static_cast<double>(total.value) / static_cast<double>(sum.value);
  for (Block& block : blocks)
    block.*field = Nanoseconds(std::llround(factor * static_cast<double>((block.*field).value)));
}

// The update is apart.
TimeParts passes_of(const Graph& graph, std::span<const OpCost> costs, const IterationTiming& times) {
  std::vector<OpCost> passes;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    if (graph.ops()[i].phase != Phase::update) passes.push_back(costs[i]);
  }
  return time_parts(passes, times.phases[0] + times.phases[1]);
}

}  // namespace

ModelCosts graph_costs(const TrainingRun& run, std::span<const OpCost> costs, const HostCosts& host,
                       const IterationTiming& times, const ProductWork& products) {
  BlockIndex index(run.graph);
  add_times(run.graph, costs, host, index);
  add_parameters(run.graph, index);
  add_memory(run.graph, index);
  ModelCosts result;
  result.blocks = std::move(index.blocks());
  scale_to(result.blocks, &Block::forward, times.phases[0]);
  scale_to(result.blocks, &Block::backward, times.phases[1]);
  int64_t parameters = 0;
  for (const Block& block : result.blocks) parameters += block.parameters;
  result.passes = passes_of(run.graph, costs, times);
  result.update_ns = static_cast<double>(times.phases[2].value) / static_cast<double>(std::max<int64_t>(parameters, 1));
  const auto samples = static_cast<double>(std::max<int64_t>(run.input.batch, 1));
  result.flops_per_sample = products.flops / samples;
  result.peak_seconds = products.peak_seconds / samples;
  result.tokens_per_sample = run.input.kind == InputKind::tokens ? run.input.size : 0;
  return result;
}

}  // namespace forerun::scale
