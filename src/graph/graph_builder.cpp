#include "graph/graph_builder.h"

#include <algorithm>

namespace forerun {

GraphBuilder::GraphBuilder() {
  graph_.names_.intern("");
  attribute_index_.emplace("{}", AttributesId(0));
  graph_.attribute_sets_.emplace_back();
}

StorageId GraphBuilder::add_storage(Bytes bytes, bool on_gpu) {
  Storage storage;
  storage.bytes = bytes;
  storage.on_gpu = on_gpu;
  storage.root_name = NameId(0);
  graph_.storages_.push_back(storage);
  return StorageId(graph_.storages_.size() - 1);
}

void GraphBuilder::mark_root(StorageId storage, Root root, std::string_view name) {
  CHECK(storage.value < graph_.storages_.size(), "mark_root: no such storage");
  graph_.storages_[storage.value].root = root;
  graph_.storages_[storage.value].root_name = graph_.names_.intern(name);
}

void GraphBuilder::mark_freed(StorageId storage, OpId before) {
  CHECK(storage.value < graph_.storages_.size(), "mark_freed: no such storage");
  graph_.storages_[storage.value].freed_before = before;
}

ShapeId GraphBuilder::intern_shape(std::span<const int64_t> extents) {
  uint64_t hash = extents.size();
  for (const int64_t extent : extents) hash = mixed(hash, static_cast<uint64_t>(extent));
  const uint32_t found = shape_index_.find(hash, [&](uint32_t id) {
    const auto known = graph_.extents(ShapeId(id));
    return std::equal(known.begin(), known.end(), extents.begin(), extents.end());
  });
  if (found != IdIndex::kNone) return ShapeId(found);
  graph_.shapes_.emplace_back(graph_.extents_.size(), extents.size());
  graph_.extents_.insert(graph_.extents_.end(), extents.begin(), extents.end());
  const ShapeId id(graph_.shapes_.size() - 1);
  shape_index_.add(hash, id.value);
  return id;
}

TensorId GraphBuilder::add_tensor(StorageId storage, DType dtype, std::span<const int64_t> shape,
                                  std::span<const int64_t> strides) {
  CHECK(storage.value < graph_.storages_.size(), "add_tensor: no such storage");
  Tensor tensor{storage, dtype, intern_shape(shape), ShapeId()};
  if (strides.size() == shape.size()) tensor.strides = intern_shape(strides);
  uint64_t hash = mixed(storage.value, static_cast<uint64_t>(dtype));
  hash = mixed(mixed(hash, tensor.shape.value), tensor.strides.value);
  const uint32_t found = tensor_index_.find(hash, [&](uint32_t id) {
    const Tensor& known = graph_.tensors_[id];
    return known.storage == storage && known.dtype == dtype && known.shape == tensor.shape &&
           known.strides == tensor.strides;
  });
  if (found != IdIndex::kNone) return TensorId(found);
  const TensorId id(graph_.tensors_.size());
  graph_.tensors_.push_back(tensor);
  tensor_index_.add(hash, id.value);
  return id;
}

AttributesId GraphBuilder::find_attributes(std::string_view text) const {
  auto found = attribute_index_.find(text);
  return found == attribute_index_.end() ? AttributesId() : found->second;
}

AttributesId GraphBuilder::remember_attributes(std::string_view text, Attributes attributes) {
  auto [found, added] = attribute_index_.try_emplace(std::string(text), AttributesId(graph_.attribute_sets_.size()));
  if (added) graph_.attribute_sets_.push_back(std::move(attributes));
  return found->second;
}

AttributesId GraphBuilder::intern(const Attributes& attributes) {
  if (attributes.empty()) return AttributesId(0);
  const uint64_t hash = attributes.hash();
  const uint32_t found =
      attributes_by_value_.find(hash, [&](uint32_t id) { return graph_.attribute_sets_[id] == attributes; });
  if (found != IdIndex::kNone) return AttributesId(found);
  const AttributesId id(graph_.attribute_sets_.size());
  graph_.attribute_sets_.push_back(attributes);
  attributes_by_value_.add(hash, id.value);
  return id;
}

NameId GraphBuilder::intern_again(std::string_view name, NameId& last) {
  if (graph_.names_[last] != name) last = graph_.names_.intern(name);
  return last;
}

OpId GraphBuilder::add_op(const OpSpec& spec) {
  return add_op(spec, spec.attributes == nullptr ? AttributesId(0) : intern(*spec.attributes));
}

OpId GraphBuilder::add_op(const OpSpec& spec, AttributesId attributes) {
  Op op;
  op.name = graph_.names_.intern(spec.name);
  op.phase = spec.phase;
  op.piece = spec.piece;
  op.module = intern_again(spec.module, last_module_);
  op.first_operand = static_cast<uint32_t>(graph_.operands_.size());
  op.input_count = static_cast<uint32_t>(spec.inputs.size());
  op.output_count = static_cast<uint32_t>(spec.outputs.size());
  op.attributes = attributes;
  op.sequence = spec.sequence;
  op.autograd_node = intern_again(spec.autograd_node, last_autograd_node_);
  graph_.operands_.insert(graph_.operands_.end(), spec.inputs.begin(), spec.inputs.end());
  graph_.operands_.insert(graph_.operands_.end(), spec.outputs.begin(), spec.outputs.end());
  graph_.ops_.push_back(op);
  return OpId(graph_.ops_.size() - 1);
}

void GraphBuilder::add_parameter(TensorId tensor) {
  graph_.parameters_.push_back(tensor);
  graph_.parameter_count_ += graph_.element_count(tensor);
}

}  // namespace forerun
