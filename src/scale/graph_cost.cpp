#include "scale/graph_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "derive/expert_parallel.h"
#include "derive/op_class.h"
#include "graph/dtype.h"
#include "graph/graph.h"
#include "graph/op_modules.h"

namespace forerun::scale {
namespace {

// The block that a module is part of; empty: ops outside modules.
std::string block_name(const ModuleBlocks& modules, std::string_view module) {
  const std::string_view block = modules.of(module);
  return std::string(block.empty() ? module.substr(0, module.find('.')) : block);
}

// Blocks in the order of the forward pass, and by name.
class BlockIndex {
 public:
  explicit BlockIndex(const Graph& graph) : modules_(graph) {
    for (const Op& op : graph.ops()) {
      if (op.phase != Phase::forward) continue;
      const std::string name = name_of(graph.module(op));
      if (!name.empty()) place(name);
    }
    if (blocks_.empty()) place("model");
    find_ops(graph);
  }

  // The block that a module or parameter is part of; where there is none, the last one (the loss, ops outside modules).
  Block& of(std::string_view module) {
    const auto found = by_name_.find(name_of(module));
    return found == by_name_.end() ? blocks_.back() : blocks_[found->second];
  }
  // That of an op of the iteration: of the backward pass the one it differentiates, or that of the op before it.
  Block& of_op(size_t op) { return blocks_[by_op_[op]]; }
  std::vector<Block>& blocks() { return blocks_; }

 private:
  [[nodiscard]] std::string name_of(std::string_view module) const { return block_name(modules_, module); }
  void place(const std::string& name) {
    const auto [at, fresh] = by_name_.try_emplace(name, blocks_.size());
    if (!fresh) return;
    blocks_.emplace_back();
    blocks_.back().name = name;
  }
  void find_ops(const Graph& graph) {
    const std::vector<NameId> modules = op_modules(graph);
    size_t before = blocks_.size() - 1;
    for (size_t i = 0; i < graph.op_count(); ++i) {
      const bool backward = graph.ops()[i].phase == Phase::backward;
      const std::string& module = graph.names()[modules[i]];
      by_op_.push_back(backward && module.empty() ? before : static_cast<size_t>(&of(module) - blocks_.data()));
      before = by_op_.back();
    }
  }

  ModuleBlocks modules_;
  std::vector<Block> blocks_;
  std::unordered_map<std::string, size_t> by_name_;
  std::vector<size_t> by_op_;
};

bool is_exchange(const Graph& graph, const Op& op) { return op_class(graph.name(op)) == OpClass::communication; }

// An op counts for its GPU time where the GPU is what a phase waits for; else for what is longer of it and the host's.
void add_times(const Graph& graph, std::span<const OpCost> costs, const HostCosts& host, BlockIndex& index) {
  std::array<Nanoseconds, 3> gpu, issued;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const auto phase = static_cast<size_t>(graph.ops()[i].phase);
    gpu[phase] += costs[i].gpu - costs[i].overlapped;
    issued[phase] += host.ops[i];
  }
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::update) continue;
    Block& block = index.of_op(i);
    const bool forward = op.phase == Phase::forward;
    if (is_exchange(graph, op)) {
      (forward ? block.forward_exchange : block.backward_exchange) += costs[i].gpu;
      continue;
    }
    const auto phase = static_cast<size_t>(op.phase);
    const Nanoseconds own = costs[i].gpu - costs[i].overlapped;
    (forward ? block.forward : block.backward) += gpu[phase] > issued[phase] ? own : std::max(own, host.ops[i]);
  }
}

// Parameters of the first block that the last one reads too.
int64_t tied_parameters(const Graph& graph, BlockIndex& index) {
  int64_t count = 0;
  std::vector<bool> seen(graph.storages().size());
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::forward) break;
    for (const TensorId id : graph.inputs(op)) {
      const StorageId at = graph.tensor(id).storage;
      const Storage& storage = graph.storage(at);
      if (storage.root != Root::parameter || seen[at.value]) continue;
      const Block& owner = index.of(graph.names()[storage.root_name]);
      const Block& reader = index.of(graph.module(op));
      if (&owner != &index.blocks().front() || &reader != &index.blocks().back() || &owner == &reader) continue;
      seen[at.value] = true;
      count += storage.bytes.value / size_of(graph.tensor(id).dtype);
    }
  }
  return count;
}

void add_parameters(const Graph& graph, BlockIndex& index) {
  std::vector<bool> seen(graph.storages().size()), experts(graph.storages().size());
  for (const Op& op : graph.ops()) {
    const auto operand = op.phase == Phase::forward ? derive::dealt_operand(graph.name(op)) : std::nullopt;
    if (operand) experts[graph.tensor(graph.inputs(op)[*operand]).storage.value] = true;
  }
  for (const Tensor& tensor : graph.tensors()) {
    const Storage& storage = graph.storage(tensor.storage);
    if (storage.root != Root::parameter || seen[tensor.storage.value]) continue;
    seen[tensor.storage.value] = true;
    Block& block = index.of(graph.names()[storage.root_name]);
    const int64_t count = storage.bytes.value / size_of(tensor.dtype);
    block.parameters += count;
    if (experts[tensor.storage.value]) block.expert_parameters += count;
  }
}

// What forward ops keep for the backward pass; and the most that lives beside that while a block runs, second forward passes
// included. Gradients of parameters are counted elsewhere.
void add_memory(const Graph& graph, BlockIndex& index) {
  std::vector<Bytes> freed(graph.op_count() + 1);  // by op: what dies before it
  std::vector<bool> seen(graph.storages().size());
  Bytes live;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::update) break;
    live -= freed[i];
    Block& block = index.of_op(i);
    for (const TensorId id : graph.outputs(op)) {
      const StorageId at = graph.tensor(id).storage;
      const Storage& storage = graph.storage(at);
      if (storage.root != Root::none || !storage.on_gpu) continue;
      if (op.phase == Phase::forward) block.output = storage.bytes;
      if (seen[at.value]) continue;
      seen[at.value] = true;
      const bool ends = storage.freed_before.valid();
      const bool kept = op.phase == Phase::forward && (!ends || graph.op(storage.freed_before).phase != Phase::forward);
      if (kept) block.saved += storage.bytes;
      if (kept || !ends) continue;
      live += storage.bytes;
      freed[storage.freed_before.value] += storage.bytes;
    }
    block.transient = std::max(block.transient, live);
  }
}

// Layers: the longest list of blocks with as many parameters each, if it is most of the model.
void mark_layers(std::vector<Block>& blocks) {
  std::map<std::pair<std::string, int64_t>, size_t> lists;
  const auto list_of = [](const Block& block) { return std::pair(folded_module(block.name), block.parameters); };
  for (const Block& block : blocks) ++lists[list_of(block)];
  const auto longest =
      std::max_element(lists.begin(), lists.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (longest->second < 2 || 2 * longest->second < blocks.size()) return;
  const auto is_layer = [&](const Block& block) { return list_of(block) == longest->first; };
  const auto first = std::find_if(blocks.begin(), blocks.end(), is_layer);
  const auto end = std::find_if_not(first, blocks.end(), is_layer);
  if (static_cast<size_t>(end - first) != longest->second) return;  // not one behind the other
  for (auto block = first; block != end; ++block) block->layer = true;
}

// Makes passes and exchange of all blocks add up to a phase; the exchange stays as it is where it fits.
void scale_to(std::vector<Block>& blocks, Nanoseconds Block::*pass, Nanoseconds Block::*exchange, Nanoseconds total) {
  const auto sum_of = [&](Nanoseconds Block::*field) {
    Nanoseconds sum;
    for (const Block& block : blocks) sum += block.*field;
    return sum;
  };
  const auto scale = [&](Nanoseconds Block::*field, Nanoseconds to) {
    const Nanoseconds sum = sum_of(field);
    if (sum.value <= 0) return;
    const double factor = static_cast<double>(to.value) / static_cast<double>(sum.value);
    for (Block& block : blocks)
      block.*field = Nanoseconds(std::llround(factor * static_cast<double>((block.*field).value)));
  };
  if (sum_of(exchange) > total) scale(exchange, total);
  scale(pass, total - sum_of(exchange));
}

// The update is apart.
TimeParts passes_of(const Graph& graph, std::span<const OpCost> costs, BlockIndex& index,
                    const RepeatedBlock& repeated) {
  std::vector<OpCost> passes;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::update || is_exchange(graph, op)) continue;
    const bool again = repeated.others > 0 && index.of_op(i).name == repeated.name;
    passes.insert(passes.end(), static_cast<size_t>(again ? 1 + repeated.others : 1), costs[i]);
  }
  Nanoseconds time;
  for (const Block& block : index.blocks()) {
    const int64_t times = block.name == repeated.name ? 1 + repeated.others : 1;
    time += (block.forward + block.backward) * times;
  }
  return time_parts(passes, time);
}

TimeParts update_parts(const Graph& graph, std::span<const OpCost> costs, Nanoseconds time) {
  std::vector<OpCost> update;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    if (graph.ops()[i].phase == Phase::update) update.push_back(costs[i]);
  }
  return time_parts(update, time);
}

void repeat(const RepeatedBlock& repeated, std::vector<Block>& blocks) {
  const auto found =
      std::find_if(blocks.begin(), blocks.end(), [&](const Block& b) { return b.name == repeated.name; });
  if (found == blocks.end()) return;
  const Block copy = *found;
  blocks.insert(found, static_cast<size_t>(repeated.others), copy);
}

}  // namespace

std::vector<size_t> block_begins(const Graph& forward) {
  const ModuleBlocks modules(forward);
  std::set<std::string, std::less<>> known;
  std::vector<size_t> begins;
  for (size_t i = 0; i < forward.op_count(); ++i) {
    const std::string name = block_name(modules, forward.module(forward.ops()[i]));
    if (!name.empty() && known.insert(name).second) begins.push_back(i);
  }
  return begins;
}

ModelCosts graph_costs(const TrainingRun& run, std::span<const OpCost> costs, const HostCosts& host,
                       const IterationTiming& times, const ProductWork& products, const RepeatedBlock& repeated) {
  BlockIndex index(run.graph);
  add_times(run.graph, costs, host, index);
  add_parameters(run.graph, index);
  add_memory(run.graph, index);
  std::vector<Block>& blocks = index.blocks();
  scale_to(blocks, &Block::forward, &Block::forward_exchange, times.phases[0]);
  scale_to(blocks, &Block::backward, &Block::backward_exchange, times.phases[1]);
  int64_t parameters = 0;
  for (const Block& block : blocks) parameters += block.parameters;
  ModelCosts result;
  result.tied_parameters = tied_parameters(run.graph, index);
  result.passes = passes_of(run.graph, costs, index, repeated);
  result.update = update_parts(run.graph, costs, times.phases[2]);
  result.update_ns = static_cast<double>(times.phases[2].value) / static_cast<double>(std::max<int64_t>(parameters, 1));
  result.blocks = std::move(blocks);
  repeat(repeated, result.blocks);
  mark_layers(result.blocks);
  const auto samples = static_cast<double>(std::max<int64_t>(run.input.batch, 1));
  result.flops_per_sample = products.flops / samples;
  result.peak_seconds = products.peak_seconds / samples;
  result.tokens_per_sample = run.input.kind == InputKind::tokens ? run.input.size : 0;
  return result;
}

}  // namespace forerun::scale
