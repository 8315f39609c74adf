#include "derive/regrouped_graph.h"

#include <numeric>

#include "graph/dtype.h"

namespace forerun::derive {
namespace {

Bytes shape_bytes(const Shape& shape, DType dtype) {
  return Bytes(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()) * size_of(dtype));
}

}  // namespace

RegroupedGraph::RegroupedGraph(const Graph& forward, const std::function<Shape(TensorId)>& shape_of) : from_(forward) {
  for (uint32_t i = 0; i < from_.tensors().size(); ++i) now_.push_back(add(TensorId(i), shape_of(TensorId(i))));
  own_ = now_;
}

// A tensor of a forward graph has a storage of its own, which results in place share.
TensorId RegroupedGraph::add(TensorId id, const Shape& shape) {
  const Tensor& tensor = from_.tensor(id);
  const auto [known, fresh] = storages_.try_emplace(tensor.storage.value);
  if (fresh) {
    const Storage& storage = from_.storage(tensor.storage);
    known->second = to_.add_storage(shape_bytes(shape, tensor.dtype), storage.on_gpu);
    if (storage.root != Root::none) to_.mark_root(known->second, storage.root, from_.names()[storage.root_name]);
  }
  return to_.add_tensor(known->second, tensor.dtype, shape);
}

Shape RegroupedGraph::shape(TensorId made) const {
  const auto extents = to_.graph().shape(made);
  return {extents.begin(), extents.end()};
}

TensorId RegroupedGraph::put_in(const char* name, std::string_view module, TensorId read, const Shape& shape) {
  const DType dtype = to_.graph().tensor(read).dtype;
  const TensorId made = to_.add_tensor(to_.add_storage(shape_bytes(shape, dtype)), dtype, shape);
  to_.add_op({.name = name, .module = module, .inputs = {&read, 1}, .outputs = {&made, 1}});
  return made;
}

std::vector<TensorId> RegroupedGraph::inputs_now(const Op& op) const {
  std::vector<TensorId> inputs;
  for (const TensorId id : from_.inputs(op)) inputs.push_back(now(id));
  return inputs;
}

void RegroupedGraph::copy(const Op& op, const std::vector<TensorId>& inputs, const Attributes& attributes) {
  std::vector<TensorId> outputs;
  for (const TensorId id : from_.outputs(op)) outputs.push_back(now(id));
  to_.add_op({.name = from_.name(op),
              .module = from_.module(op),
              .inputs = inputs,
              .outputs = outputs,
              .attributes = &attributes});
}

Graph RegroupedGraph::finish() {
  int64_t parameters = from_.parameter_count();
  for (const TensorId id : from_.parameters()) {
    to_.add_parameter(own_[id.value]);
    parameters -= from_.element_count(id) - to_.graph().element_count(own_[id.value]);
  }
  for (const TensorId id : from_.results()) to_.add_result(now(id));
  to_.set_parameter_count(parameters);
  return to_.finish();
}

}  // namespace forerun::derive
