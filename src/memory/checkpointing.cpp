#include "memory/checkpointing.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/op_modules.h"
#include "memory/graph_rewrite.h"

namespace forerun {
namespace {

constexpr size_t kNowhere = SIZE_MAX;

struct RerunBlock {
  std::string name;
  size_t last_forward = 0;
  size_t first_backward = kNowhere;
  int64_t forward_ops = 0;
  std::vector<StorageId> remade;  // in the order of their numbers
};

// Where a storage is used.
struct StorageUse {
  size_t block = kNowhere;  // that made it
  bool outside = false;     // forward ops of other blocks use it
  bool backward = false;    // some backward op uses it
  size_t last_backward = 0;
};

class Checkpointing {
 public:
  explicit Checkpointing(const Graph& graph)
      : graph_(graph), rewrite_(graph), usage_(graph.storages().size()), block_of_op_(graph.op_count(), kNowhere) {}

  Checkpointed run() {
    find_blocks();
    find_usage();
    for (uint32_t id = 0; id < usage_.size(); ++id) drop(id);
    Checkpointed result;
    int64_t twice = 0;
    int64_t forward = 0;
    for (const Op& op : graph_.ops()) forward += op.phase == Phase::forward ? 1 : 0;
    for (RerunBlock& block : blocks_) {
      if (block.remade.empty()) continue;
      ++result.blocks;
      twice += block.forward_ops;
      rewrite_.insert(block.first_backward, {kRecomputeOp, Phase::backward, block.name, block.remade, {}});
    }
    if (forward > 0) result.forward_ops = static_cast<double>(twice) / static_cast<double>(forward);
    result.graph = rewrite_.finish([this](size_t op, TensorId id) { return choose(op, id); });
    return result;
  }

 private:
  void find_blocks() {
    const std::vector<NameId> modules = op_modules(graph_);
    std::map<std::string, size_t, std::less<>> index;
    for (size_t i = 0; i < graph_.op_count(); ++i) {
      const Op& op = graph_.ops()[i];
      if (op.phase == Phase::update) break;
      const std::string_view name = block_of(graph_.names()[modules[i]]);
      if (name.empty()) continue;
      auto found = index.find(name);
      if (found == index.end()) {
        if (op.phase != Phase::forward) continue;
        found = index.emplace(std::string(name), blocks_.size()).first;
        blocks_.push_back({.name = std::string(name)});
      }
      RerunBlock& block = blocks_[found->second];
      block_of_op_[i] = found->second;
      if (op.phase == Phase::forward) {
        block.last_forward = i;
        ++block.forward_ops;
      } else {
        block.first_backward = std::min(block.first_backward, i);
      }
    }
  }

  void find_usage() {
    for (size_t i = 0; i < graph_.op_count(); ++i) {
      const Op& op = graph_.ops()[i];
      for (const TensorId id : graph_.inputs(op)) use(graph_.tensor(id).storage.value, i, op.phase);
      for (const TensorId id : graph_.outputs(op)) {
        const uint32_t storage = graph_.tensor(id).storage.value;
        if (op.phase == Phase::forward && made_.insert({storage, i}).second) {
          usage_[storage].block = block_of_op_[i];
        } else {
          use(storage, i, op.phase);
        }
      }
    }
  }

  void use(uint32_t storage, size_t op, Phase phase) {
    StorageUse& usage = usage_[storage];
    if (phase == Phase::forward) {
      usage.outside |= block_of_op_[op] != usage.block;
    } else {
      usage.backward = true;
      usage.last_backward = op;
      // A backward op of another block, or of none, needs it before or after this block's own: it has to stay.
      usage.outside |= block_of_op_[op] != kNowhere && block_of_op_[op] != usage.block;
      if (usage.block != kNowhere && op < blocks_[usage.block].first_backward) usage.outside = true;
    }
  }

  void drop(uint32_t id) {
    const Storage& storage = graph_.storages()[id];
    const StorageUse& usage = usage_[id];
    if (storage.root != Root::none || !storage.on_gpu || usage.block == kNowhere || usage.outside || !usage.backward)
      return;
    RerunBlock& block = blocks_[usage.block];
    if (block.first_backward == kNowhere || !storage.freed_before.valid()) return;
    const size_t dies = storage.freed_before.value;
    if (dies <= block.last_forward + 1 || dies <= block.first_backward) return;
    const StorageId again = rewrite_.add_storage(storage.bytes);
    rewrite_.free_before(StorageId(id), block.last_forward + 1);
    rewrite_.free_before(again, dies);
    block.remade.push_back(again);
    remade_[id] = again;
  }

  [[nodiscard]] std::optional<GraphRewrite::Taken> choose(size_t op, TensorId id) const {
    if (op >= graph_.op_count() || graph_.ops()[op].phase == Phase::forward) return std::nullopt;
    const auto found = remade_.find(graph_.tensor(id).storage.value);
    if (found == remade_.end()) return std::nullopt;
    const auto shape = graph_.shape(id);
    return GraphRewrite::Taken{found->second, {shape.begin(), shape.end()}};
  }

  const Graph& graph_;
  GraphRewrite rewrite_;
  std::vector<StorageUse> usage_;  // by storage
  std::vector<size_t> block_of_op_;
  std::vector<RerunBlock> blocks_;
  std::unordered_map<uint32_t, size_t> made_;  // the forward op that first gives it out
  std::unordered_map<uint32_t, StorageId> remade_;
};

}  // namespace

Checkpointed checkpointed(const Graph& graph) { return Checkpointing(graph).run(); }

}  // namespace forerun
