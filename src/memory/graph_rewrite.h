// GraphRewrite: a copy of a training iteration with other sizes, lifetimes and ops, for what a change to a run does to its
// memory.
//
// Storages keep their numbers; further ones come behind them. Ops are put in between, and tensors of an op can be taken
// from another storage than in the original, with another shape. What is not told otherwise stays as it is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/graph_builder.h"

namespace forerun {

class GraphRewrite {
 public:
  explicit GraphRewrite(const Graph& from);

  void resize(StorageId storage, Bytes bytes) { bytes_[storage.value] = bytes; }
  // Dies before an op of the original, however many ops are put in before that.
  void free_before(StorageId storage, size_t op) { freed_[storage.value] = op; }

  // A storage behind those of the original. Not freed until told so.
  StorageId add_storage(Bytes bytes);
  StorageId add_root(Bytes bytes, Root root, const std::string& name);

  // Puts an op in before that one of the original, behind those put in before it. It gives out all of `made`, and `freed`
  // die when it is done.
  struct Added {
    std::string name;
    Phase phase = Phase::forward;
    std::string module;
    std::vector<StorageId> made;
    std::vector<StorageId> freed;
  };
  void insert(size_t before, Added op) { added_[before].push_back(std::move(op)); }

  // Where a tensor of an op is taken from, and its shape; nothing: as in the original.
  struct Taken {
    StorageId storage;
    std::vector<int64_t> shape;
  };
  using Choice = std::function<std::optional<Taken>(size_t op, TensorId tensor)>;

  Graph finish(const Choice& choose);

 private:
  static constexpr size_t kNever = SIZE_MAX;
  struct NewRoot {
    StorageId storage;
    Root root;
    std::string name;
  };

  void add_storages();
  TensorId copy(size_t op, TensorId tensor, const Choice& choose);
  void emit(const Added& op);
  void emit(size_t index, const Choice& choose);

  const Graph& from_;
  GraphBuilder to_;
  std::vector<Bytes> bytes_;   // by storage, old and new
  std::vector<size_t> freed_;  // by storage: the op of the original
  std::vector<NewRoot> roots_;
  std::vector<std::vector<Added>> added_;             // by op of the original; one more for the end
  std::vector<std::pair<StorageId, OpId>> freed_at_;  // by ops that were put in
};

}  // namespace forerun
