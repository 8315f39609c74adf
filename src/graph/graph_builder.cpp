#include "graph/graph_builder.h"

#include <algorithm>

namespace forerun {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash;
}

}  // namespace

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

size_t GraphBuilder::TensorHash::operator()(const Tensor& t) const noexcept {
  return mix(mix(mix(t.storage.value, static_cast<uint64_t>(t.dtype)), t.shape.value), t.strides.value);
}

bool GraphBuilder::TensorEqual::operator()(const Tensor& a, const Tensor& b) const noexcept {
  return a.storage == b.storage && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

ShapeId GraphBuilder::intern_shape(std::span<const int64_t> extents) {
  uint64_t hash = extents.size();
  for (const int64_t extent : extents) hash = mix(hash, static_cast<uint64_t>(extent));
  auto [first, last] = shape_index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const auto known = graph_.extents(it->second);
    if (std::equal(known.begin(), known.end(), extents.begin(), extents.end())) return it->second;
  }
  graph_.shapes_.emplace_back(graph_.extents_.size(), extents.size());
  graph_.extents_.insert(graph_.extents_.end(), extents.begin(), extents.end());
  ShapeId id(graph_.shapes_.size() - 1);
  shape_index_.emplace(hash, id);
  return id;
}

TensorId GraphBuilder::add_tensor(StorageId storage, DType dtype, std::span<const int64_t> shape,
                                  std::span<const int64_t> strides) {
  CHECK(storage.value < graph_.storages_.size(), "add_tensor: no such storage");
  Tensor tensor{storage, dtype, intern_shape(shape), ShapeId()};
  if (strides.size() == shape.size()) tensor.strides = intern_shape(strides);
  auto [found, added] = tensor_index_.try_emplace(tensor, TensorId(graph_.tensors_.size()));
  if (added) graph_.tensors_.push_back(tensor);
  return found->second;
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
  return remember_attributes(attributes.to_json(), attributes);
}

OpId GraphBuilder::add_op(const OpSpec& spec) {
  return add_op(spec, spec.attributes == nullptr ? AttributesId(0) : intern(*spec.attributes));
}

OpId GraphBuilder::add_op(const OpSpec& spec, AttributesId attributes) {
  Op op;
  op.name = graph_.names_.intern(spec.name);
  op.phase = spec.phase;
  op.module = graph_.names_.intern(spec.module);
  op.first_operand = static_cast<uint32_t>(graph_.operands_.size());
  op.input_count = static_cast<uint32_t>(spec.inputs.size());
  op.output_count = static_cast<uint32_t>(spec.outputs.size());
  op.attributes = attributes;
  op.sequence = spec.sequence;
  op.autograd_node = graph_.names_.intern(spec.autograd_node);
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
