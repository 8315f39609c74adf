#include "memory/graph_rewrite.h"

namespace forerun {

GraphRewrite::GraphRewrite(const Graph& from) : from_(from), added_(from.op_count() + 1) {
  for (const Storage& storage : from.storages()) {
    bytes_.push_back(storage.bytes);
    freed_.push_back(storage.freed_before.valid() ? storage.freed_before.value : kNever);
  }
}

StorageId GraphRewrite::add_storage(Bytes bytes) {
  bytes_.push_back(bytes);
  freed_.push_back(kNever);
  return StorageId(bytes_.size() - 1);
}

StorageId GraphRewrite::add_root(Bytes bytes, Root root, const std::string& name) {
  const StorageId storage = add_storage(bytes);
  roots_.push_back({storage, root, name});
  return storage;
}

void GraphRewrite::add_storages() {
  for (size_t id = 0; id < bytes_.size(); ++id) {
    const bool old = id < from_.storages().size();
    (void)to_.add_storage(bytes_[id], !old || from_.storages()[id].on_gpu);
    if (!old || from_.storages()[id].root == Root::none) continue;
    to_.mark_root(StorageId(id), from_.storages()[id].root, from_.names()[from_.storages()[id].root_name]);
  }
  for (const NewRoot& root : roots_) to_.mark_root(root.storage, root.root, root.name);
}

TensorId GraphRewrite::copy(size_t op, TensorId id, const Choice& choose) {
  const Tensor& tensor = from_.tensor(id);
  const std::optional<Taken> taken = choose ? choose(op, id) : std::nullopt;
  if (!taken) return to_.add_tensor(tensor.storage, tensor.dtype, from_.shape(id), from_.strides(id));
  return to_.add_tensor(taken->storage, tensor.dtype, taken->shape);
}

void GraphRewrite::emit(const Added& op) {
  std::vector<TensorId> outputs;
  for (const StorageId storage : op.made) {
    outputs.push_back(to_.add_tensor(storage, DType::uint8, std::vector<int64_t>{bytes_[storage.value].value}));
  }
  const OpId id =
      to_.add_op({.name = op.name, .phase = op.phase, .module = op.module, .inputs = {}, .outputs = outputs});
  for (const StorageId storage : op.freed) freed_at_.emplace_back(storage, OpId(size_t{id.value} + 1));
}

void GraphRewrite::emit(size_t index, const Choice& choose) {
  const Op& op = from_.ops()[index];
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  for (const TensorId id : from_.inputs(op)) inputs.push_back(copy(index, id, choose));
  for (const TensorId id : from_.outputs(op)) outputs.push_back(copy(index, id, choose));
  const std::string node = op.autograd_node.valid() ? from_.names()[op.autograd_node] : std::string();
  to_.add_op({.name = from_.name(op),
              .phase = op.phase,
              .module = from_.module(op),
              .inputs = inputs,
              .outputs = outputs,
              .attributes = &from_.attributes(op),
              .sequence = op.sequence,
              .autograd_node = node});
}

Graph GraphRewrite::finish(const Choice& choose) {
  add_storages();
  std::vector<OpId> moved(from_.op_count() + 1);  // the first op put in before it, or itself
  for (size_t i = 0; i <= from_.op_count(); ++i) {
    moved[i] = OpId(to_.op_count());
    for (const Added& op : added_[i]) emit(op);
    if (i < from_.op_count()) emit(i, choose);
  }
  for (size_t id = 0; id < bytes_.size(); ++id) {
    if (freed_[id] != kNever) to_.mark_freed(StorageId(id), moved[freed_[id]]);
  }
  for (const auto& [storage, op] : freed_at_) to_.mark_freed(storage, op);
  for (const TensorId id : from_.parameters()) to_.add_parameter(copy(from_.op_count(), id, choose));
  to_.set_parameter_count(from_.parameter_count());
  if (from_.parameters().empty()) to_.set_parameter_tensors(from_.parameter_tensors());
  return to_.finish();
}

}  // namespace forerun
