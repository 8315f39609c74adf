#include "memory/sharded_blocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>

#include "graph/op_modules.h"
#include "memory/data_parallel.h"
#include "memory/graph_rewrite.h"
#include "memory/update_columns.h"

namespace forerun {
namespace {

constexpr size_t kNoOp = SIZE_MAX;

// First and last op of a phase that a block has.
struct OpSpan {
  size_t first = kNoOp;
  size_t last = 0;
  void add(size_t op) {
    first = std::min(first, op);
    last = std::max(last, op);
  }
  [[nodiscard]] bool any() const { return first != kNoOp; }
};

struct ShardedBlock {
  std::string name;  // empty: the rest of the model
  std::vector<uint32_t> parameters;
  std::vector<Gradient> gradients;
  OpSpan forward, backward;
  int64_t gathered = 0;      // padded bytes of all its parameters
  int64_t reduced = 0;       // and gradients
  StorageId gathered_again;  // the buffer that parameters are gathered into for the backward pass
};

class Sharding {
 public:
  Sharding(const Graph& graph, int64_t gpus, bool reshard)
      : graph_(graph), gpus_(gpus), reshard_(reshard), rewrite_(graph), pieces_(graph.storages().size()) {}

  Graph run() {
    find_pieces();
    find_blocks();
    for (ShardedBlock& block : blocks_) gather(block);
    order_forward();
    order_backward();
    order_reductions();
    return rewrite_.finish([this](size_t op, TensorId id) { return choose(op, id); });
  }

 private:
  // Bytes of this GPU's piece of each storage, from a tensor that fills it, or from all parameters that lie in it.
  void find_pieces() {
    std::vector<int64_t> parts(graph_.storages().size(), 0);
    for (const TensorId id : graph_.parameters()) parts[graph_.tensor(id).storage.value] += piece_bytes(id);
    for (size_t id = 0; id < pieces_.size(); ++id) {
      pieces_[id] = parts[id] > 0 ? parts[id] : (graph_.storages()[id].bytes.value + gpus_ - 1) / gpus_;
    }
    for (size_t i = 0; i < graph_.tensors().size(); ++i) {
      const TensorId id(i);
      const uint32_t storage = graph_.tensor(id).storage.value;
      if (parts[storage] == 0 && graph_.bytes_of(id) == graph_.storages()[storage].bytes) {
        pieces_[storage] = piece_bytes(id);
        parts[storage] = -1;  // the first such tensor tells
      }
    }
  }

  [[nodiscard]] int64_t piece_bytes(TensorId id) const {
    const std::vector<int64_t> shape = piece_of(graph_.shape(id), gpus_);
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    return count * size_of(graph_.tensor(id).dtype);
  }

  ShardedBlock& block_named(std::string_view name) {
    const auto [found, added] = index_.try_emplace(std::string(name), blocks_.size());
    if (added) blocks_.push_back({.name = std::string(name)});
    return blocks_[found->second];
  }

  void find_blocks() {
    std::vector<bool> made(graph_.storages().size(), false);
    for (uint32_t id = 0; id < graph_.storages().size(); ++id) {
      const Storage& storage = graph_.storages()[id];
      if (storage.root != Root::parameter) continue;
      ShardedBlock& block = block_named(block_of(graph_.names()[storage.root_name]));
      block.parameters.push_back(id);
      block.gathered += pieces_[id] * gpus_;
      block_of_storage_[id] = &block - blocks_.data();
      rewrite_.resize(StorageId(id), Bytes(pieces_[id]));
    }
    for (size_t i = 0; i < graph_.op_count(); ++i) {
      const Op& op = graph_.ops()[i];
      if (op.phase == Phase::update) {
        for (const TensorId id : graph_.outputs(op)) shrink(graph_.tensor(id).storage.value, made);
        continue;
      }
      for (const TensorId id : graph_.outputs(op)) made[graph_.tensor(id).storage.value] = true;
      for (const TensorId id : graph_.inputs(op)) {
        const auto found = block_of_storage_.find(graph_.tensor(id).storage.value);
        if (found == block_of_storage_.end()) continue;
        ShardedBlock& block = blocks_[static_cast<size_t>(found->second)];
        (op.phase == Phase::forward ? block.forward : block.backward).add(i);
      }
    }
    for (uint32_t id = 0; id < graph_.storages().size(); ++id) {
      if (graph_.storages()[id].root == Root::state) rewrite_.resize(StorageId(id), Bytes(pieces_[id]));
    }
    add_gradients();
  }

  // What the update makes is of a piece's size.
  void shrink(uint32_t storage, const std::vector<bool>& made) {
    if (made[storage] || graph_.storages()[storage].root != Root::none) return;
    rewrite_.resize(StorageId(storage), Bytes(pieces_[storage]));
  }

  void add_gradients() {
    const std::vector<NameId> modules = op_modules(graph_);
    const UpdateColumns columns(graph_);
    std::unordered_map<uint32_t, ptrdiff_t> by_column;
    for (const auto& [storage, block] : block_of_storage_) by_column[columns.column(StorageId(storage))] = block;
    for (const Gradient& gradient : gradients_of(graph_)) {
      const auto known = by_column.find(columns.column(gradient.storage));
      ShardedBlock& block = known != by_column.end() ? blocks_[static_cast<size_t>(known->second)]
                                                     : block_named(block_of(graph_.names()[modules[gradient.made]]));
      block.gradients.push_back(gradient);
      block.reduced += pieces_[gradient.storage.value] * gpus_;
      block.backward.add(gradient.made);
    }
  }

  // The copies of a block's parameters: one for both passes, or one for each.
  void gather(ShardedBlock& block) {
    const bool twice = reshard_ && !block.name.empty() && block.forward.any() && block.backward.any();
    for (const uint32_t id : block.parameters) {
      const StorageId whole = rewrite_.add_storage(Bytes(pieces_[id] * gpus_));
      wholes_[0][id] = whole;
      wholes_[1][id] = twice ? rewrite_.add_storage(Bytes(pieces_[id] * gpus_)) : whole;
      const size_t last = block.backward.any() ? block.backward.last : block.forward.last;
      rewrite_.free_before(wholes_[1][id], last + 1);
      if (twice) rewrite_.free_before(whole, block.forward.last + 1);
    }
  }

  [[nodiscard]] std::vector<ShardedBlock*> in_order(OpSpan ShardedBlock::*pass) {
    std::vector<ShardedBlock*> order;
    for (ShardedBlock& block : blocks_) {
      if ((block.*pass).any()) order.push_back(&block);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](const ShardedBlock* a, const ShardedBlock* b) { return (a->*pass).first < (b->*pass).first; });
    return order;
  }

  [[nodiscard]] std::vector<StorageId> wholes(const ShardedBlock& block, int pass) const {
    std::vector<StorageId> list;
    for (const uint32_t id : block.parameters) list.push_back(wholes_[pass].at(id));
    return list;
  }

  void gather_op(size_t before, Phase phase, const ShardedBlock& block, StorageId buffer) {
    rewrite_.insert(before, {std::string(kGatherOp), phase, block.name, {buffer}, {}});
  }

  void order_forward() {
    StorageId held;
    for (ShardedBlock* block : in_order(&ShardedBlock::forward)) {
      if (block->gathered == 0) continue;
      const StorageId buffer = rewrite_.add_storage(Bytes(block->gathered));
      gather_op(block->forward.first, Phase::forward, *block, buffer);
      std::vector<StorageId> freed;
      if (held.valid()) freed.push_back(held);
      rewrite_.insert(block->forward.first,
                      {std::string(kCopyOutOp), Phase::forward, block->name, wholes(*block, 0), freed});
      held = buffer;
    }
    if (held.valid()) rewrite_.free_before(held, first_of(Phase::backward));
  }

  void order_backward() {
    std::vector<ShardedBlock*> order;
    for (ShardedBlock* block : in_order(&ShardedBlock::backward)) {
      const bool again = !block->parameters.empty() &&
                         wholes_[1].at(block->parameters.front()) != wholes_[0].at(block->parameters.front());
      if (again || (!block->forward.any() && block->gathered > 0)) order.push_back(block);
    }
    for (ShardedBlock* block : order) block->gathered_again = rewrite_.add_storage(Bytes(block->gathered));
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t at = order[i]->backward.first;
      if (i == 0) gather_op(at, Phase::backward, *order[i], order[i]->gathered_again);
      rewrite_.insert(
          at,
          {std::string(kCopyOutOp), Phase::backward, order[i]->name, wholes(*order[i], 1), {order[i]->gathered_again}});
      if (i + 1 < order.size()) gather_op(at, Phase::backward, *order[i + 1], order[i + 1]->gathered_again);
    }
  }

  void order_reductions() {
    std::vector<ShardedBlock*> order = in_order(&ShardedBlock::backward);
    std::erase_if(order, [](const ShardedBlock* block) { return block->reduced == 0; });
    std::stable_sort(order.begin(), order.end(),
                     [](const ShardedBlock* a, const ShardedBlock* b) { return a->backward.last < b->backward.last; });
    StorageId held;
    for (ShardedBlock* block : order) {
      const StorageId sent = rewrite_.add_storage(Bytes(block->reduced));
      const StorageId piece = rewrite_.add_storage(Bytes(block->reduced / gpus_));
      std::vector<StorageId> freed;
      if (held.valid()) freed.push_back(held);
      if (block == order.back()) freed.push_back(sent);
      for (const Gradient& gradient : block->gradients) {
        freed.push_back(gradient.storage);
        homes_[gradient.storage.value] = piece;
      }
      rewrite_.insert(block->backward.last + 1,
                      {std::string(kReduceOp), Phase::backward, block->name, {sent, piece}, freed});
      held = sent;
    }
  }

  [[nodiscard]] size_t first_of(Phase phase) const {
    for (size_t i = 0; i < graph_.op_count(); ++i) {
      if (graph_.ops()[i].phase == phase) return i;
    }
    return graph_.op_count();
  }

  [[nodiscard]] std::optional<GraphRewrite::Taken> choose(size_t op, TensorId id) const {
    const uint32_t storage = graph_.tensor(id).storage.value;
    const bool updating = op >= graph_.op_count() || graph_.ops()[op].phase == Phase::update;
    const auto home = homes_.find(storage);
    if (updating) {
      const StorageId from = home == homes_.end() ? StorageId(storage) : home->second;
      return GraphRewrite::Taken{from, piece_of(graph_.shape(id), gpus_)};
    }
    const auto& wholes = wholes_[graph_.ops()[op].phase == Phase::forward ? 0 : 1];
    const auto whole = wholes.find(storage);
    if (whole == wholes.end()) return std::nullopt;
    const auto shape = graph_.shape(id);
    return GraphRewrite::Taken{whole->second, {shape.begin(), shape.end()}};
  }

  const Graph& graph_;
  int64_t gpus_;
  bool reshard_;
  GraphRewrite rewrite_;
  std::vector<int64_t> pieces_;  // bytes, by storage
  std::vector<ShardedBlock> blocks_;
  std::map<std::string, size_t> index_;
  std::unordered_map<uint32_t, ptrdiff_t> block_of_storage_;
  std::unordered_map<uint32_t, StorageId> wholes_[2];  // by parameter: its copy in the forward and backward pass
  std::unordered_map<uint32_t, StorageId> homes_;      // by gradient: this GPU's pieces
};

}  // namespace

std::vector<int64_t> piece_of(std::span<const int64_t> shape, int64_t gpus) {
  std::vector<int64_t> piece(shape.begin(), shape.end());
  if (piece.empty()) return piece;
  const auto enough = std::find_if(piece.begin(), piece.end(), [&](int64_t extent) { return extent >= gpus; });
  int64_t& cut = enough == piece.end() ? piece.front() : *enough;
  cut = (cut + gpus - 1) / gpus;
  return piece;
}

Graph sharded_blocks(const Graph& graph, int64_t gpus, bool reshard) { return Sharding(graph, gpus, reshard).run(); }

}  // namespace forerun
