#include "derive/stage_forward.h"

#include "graph/dtype.h"
#include "graph/graph_builder.h"

namespace forerun::derive {
namespace {

class Slicing {
 public:
  Slicing(const Graph& from, size_t begin, size_t end)
      : from_(from), begin_(begin), end_(end), trains_(from.tensors().size()), now_(from.tensors().size()) {
    for (const TensorId id : from_.parameters()) trains_[id.value] = true;
    for (const Op& op : from_.ops()) {
      bool trains = false;
      for (const TensorId id : from_.inputs(op)) trains = trains || trains_[id.value];
      for (const TensorId id : from_.outputs(op)) {
        trains_[id.value] = trains_[id.value] || (trains && is_floating(from_.tensor(id).dtype));
      }
    }
  }

  StageForward build() {
    StageForward stage;
    stage.last = end_ == from_.op_count();
    for (size_t i = begin_; i < end_; ++i) add_op(from_.ops()[i], stage);
    if (stage.last) {
      for (const TensorId id : from_.results())
        to_.add_result(now_[id.value].valid() ? now_[id.value] : given(id, stage));
    } else {
      hand_on();
    }
    int64_t parameters = 0;
    for (const TensorId id : from_.parameters()) {
      if (!now_[id.value].valid()) continue;
      to_.add_parameter(now_[id.value]);
      parameters += from_.element_count(id);
    }
    to_.set_parameter_count(parameters);
    stage.graph = to_.finish();
    return stage;
  }

 private:
  TensorId add(TensorId id, Root root, const std::string& name) {
    const Tensor& tensor = from_.tensor(id);
    const StorageId own = to_.add_storage(from_.storage(tensor.storage).bytes, from_.storage(tensor.storage).on_gpu);
    if (root != Root::none) to_.mark_root(own, root, name);
    return now_[id.value] = to_.add_tensor(own, tensor.dtype, from_.shape(id));
  }

  // A root, or what an earlier stage made.
  TensorId given(TensorId id, StageForward& stage) {
    const Storage& storage = from_.storage(from_.tensor(id).storage);
    if (storage.root != Root::none) return add(id, storage.root, from_.names()[storage.root_name]);
    const TensorId made = add(id, Root::input, "received." + std::to_string(id.value));
    if (trains_[id.value]) stage.received.push_back(made);
    return made;
  }

  void add_op(const Op& op, StageForward& stage) {
    std::vector<TensorId> inputs, outputs;
    for (const TensorId id : from_.inputs(op))
      inputs.push_back(now_[id.value].valid() ? now_[id.value] : given(id, stage));
    for (const TensorId id : from_.outputs(op)) {
      outputs.push_back(now_[id.value].valid() ? now_[id.value] : add(id, Root::none, ""));
    }
    to_.add_op({.name = from_.name(op),
                .module = from_.module(op),
                .inputs = inputs,
                .outputs = outputs,
                .attributes = &from_.attributes(op)});
  }

  // What later stages read of this one, once each.
  void hand_on() {
    std::vector<bool> made(from_.tensors().size()), handed(from_.tensors().size());
    for (size_t i = begin_; i < end_; ++i) {
      for (const TensorId id : from_.outputs(from_.ops()[i])) made[id.value] = true;
    }
    for (size_t i = end_; i < from_.op_count(); ++i) {
      for (const TensorId id : from_.inputs(from_.ops()[i])) {
        if (!made[id.value] || handed[id.value] || !trains_[id.value]) continue;
        handed[id.value] = true;
        to_.add_result(now_[id.value]);
      }
    }
  }

  const Graph& from_;
  size_t begin_, end_;
  std::vector<bool> trains_;  // by tensor: weights, and what depends on them
  std::vector<TensorId> now_;
  GraphBuilder to_;
};

}  // namespace

StageForward stage_forward(const Graph& forward, size_t begin, size_t end) {
  return Slicing(forward, begin, end).build();
}

}  // namespace forerun::derive
