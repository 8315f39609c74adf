// GraphBuilder: appends ops, tensors and storages, interning what repeats, and hands out the immutable Graph.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id_index.h"
#include "graph/graph.h"

namespace forerun {

class GraphBuilder {
 public:
  GraphBuilder();

  StorageId add_storage(Bytes bytes, bool on_gpu = true);
  void mark_root(StorageId storage, Root root, std::string_view name);
  void mark_freed(StorageId storage, OpId before);

  // The tensor with this storage, type, shape and strides; made if new. Empty strides of a tensor with rank: unknown.
  TensorId add_tensor(StorageId storage, DType dtype, std::span<const int64_t> shape,
                      std::span<const int64_t> strides = {});

  struct OpSpec {
    std::string_view name;
    Phase phase = Phase::forward;
    std::string_view module = "";
    std::span<const TensorId> inputs;
    std::span<const TensorId> outputs;
    const Attributes* attributes = nullptr;  // null: none
    uint32_t sequence = 0;
    std::string_view autograd_node = "";
    uint16_t piece = 0;
  };
  OpId add_op(const OpSpec& spec);

  AttributesId intern(const Attributes& attributes);
  // For importers that see the same attribute text again and again: the id known for this text, invalid if none yet.
  AttributesId find_attributes(std::string_view text) const;
  AttributesId remember_attributes(std::string_view text, Attributes attributes);
  OpId add_op(const OpSpec& spec, AttributesId attributes);

  void add_parameter(TensorId tensor);
  void set_parameter_count(int64_t count) { graph_.parameter_count_ = count; }
  void set_parameter_tensors(int64_t count) { graph_.parameter_tensor_count_ = count; }  // where they are not added
  void add_result(TensorId tensor) { graph_.results_.push_back(tensor); }

  [[nodiscard]] size_t op_count() const { return graph_.ops_.size(); }
  // What is built so far, to look up shapes while building.
  [[nodiscard]] const Graph& graph() const { return graph_; }

  Graph finish() { return std::move(graph_); }

 private:
  ShapeId intern_shape(std::span<const int64_t> extents);
  // The id of a name which is mostly the one that was asked for last.
  NameId intern_again(std::string_view name, NameId& last);

  Graph graph_;
  IdIndex shape_index_;
  IdIndex tensor_index_;
  IdIndex attributes_by_value_;
  NameId last_module_ = NameId(0);
  NameId last_autograd_node_ = NameId(0);
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, AttributesId, TextHash, std::equal_to<>> attribute_index_;
};

}  // namespace forerun
