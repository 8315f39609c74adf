// The core of ForwardBuilder: scopes, roots, emission, errors. The vocabulary of ops is in forward_ops.cpp.
#include "graph/forward_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace forerun {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 46;  // 256 TiB of float32: beyond any machine, far from overflow

}  // namespace

ForwardBuilder::ForwardBuilder() = default;

std::string ForwardBuilder::path_of(std::string_view name) const {
  std::string path = scope_;
  if (!path.empty() && !name.empty()) path += '.';
  return path.append(name);
}

ForwardBuilder::Scope::Scope(ForwardBuilder& builder, std::string_view name)
    : builder_(builder), restored_(std::exchange(builder.scope_, builder.path_of(name))) {}

ForwardBuilder::Scope::Scope(ForwardBuilder& builder, const std::string& path, Absolute /*tag*/)
    : builder_(builder), restored_(std::exchange(builder.scope_, path)) {}

ForwardBuilder::Scope::~Scope() { builder_.scope_ = std::move(restored_); }

void ForwardBuilder::fail(std::string what, std::string remedy) {
  if (!error_) error_ = Error{std::move(what), scope_.empty() ? "" : "module " + scope_, std::move(remedy)};
}

TensorId ForwardBuilder::dummy() {
  const StorageId storage = graph_.add_storage(Bytes(4));
  return graph_.add_tensor(storage, DType::float32, Shape{});
}

TensorId ForwardBuilder::new_tensor(const Shape& shape, DType dtype) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      fail(fmt::format("shape [{}] has an extent below 0", fmt::join(shape, ", ")),
           "use a larger input or fewer stages");
      return dummy();
    }
    if (extent > 0 && count > kMaxElements / extent) {
      fail(fmt::format("shape [{}] has more than 2^46 elements", fmt::join(shape, ", ")),
           "use a smaller configuration");
      return dummy();
    }
    count *= extent;
  }
  const StorageId storage = graph_.add_storage(Bytes(count * size_of(dtype)));
  return graph_.add_tensor(storage, dtype, shape);
}

TensorId ForwardBuilder::root(Root kind, std::string_view name, const Shape& shape, DType dtype) {
  const TensorId tensor = new_tensor(shape, dtype);
  graph_.mark_root(graph_.graph().tensor(tensor).storage, kind, path_of(name));
  return tensor;
}

TensorId ForwardBuilder::parameter(std::string_view name, const Shape& shape, DType dtype) {
  const TensorId tensor = root(Root::parameter, name, shape, dtype);
  if (!error_) graph_.add_parameter(tensor);
  return tensor;
}

TensorId ForwardBuilder::frozen_parameter(std::string_view name, const Shape& shape, DType dtype) {
  const TensorId tensor = buffer(name, shape, dtype);
  const Graph& graph = graph_.graph();
  if (!error_) graph_.set_parameter_count(graph.parameter_count() + graph.element_count(tensor));
  return tensor;
}

TensorId ForwardBuilder::buffer(std::string_view name, const Shape& shape, DType dtype) {
  return root(Root::buffer, name, shape, dtype);
}

TensorId ForwardBuilder::input(std::string_view name, const Shape& shape, DType dtype) {
  return root(Root::input, name, shape, dtype);
}

std::vector<TensorId> ForwardBuilder::emit_many(std::string_view name, const std::vector<TensorId>& inputs,
                                                const std::vector<std::pair<Shape, DType>>& results,
                                                const Attributes& attributes) {
  std::vector<TensorId> outputs;
  outputs.reserve(results.size());
  for (const auto& [shape, dtype] : results) outputs.push_back(error_ ? dummy() : new_tensor(shape, dtype));
  if (!error_) {
    graph_.add_op({.name = name, .module = scope_, .inputs = inputs, .outputs = outputs, .attributes = &attributes});
  }
  return outputs;
}

TensorId ForwardBuilder::emit(std::string_view name, const std::vector<TensorId>& inputs, const Shape& shape,
                              DType dtype, const Attributes& attributes) {
  return emit_many(name, inputs, {{shape, dtype}}, attributes).front();
}

TensorId ForwardBuilder::emit_in_place(std::string_view name, const std::vector<TensorId>& inputs,
                                       const Attributes& attributes) {
  if (!error_) {
    const std::vector<TensorId> outputs = {inputs.front()};
    graph_.add_op({.name = name, .module = scope_, .inputs = inputs, .outputs = outputs, .attributes = &attributes});
  }
  return inputs.front();
}

std::vector<TensorId> ForwardBuilder::opaque(std::string_view name, const std::vector<TensorId>& inputs,
                                             const std::vector<std::pair<Shape, DType>>& results,
                                             const Attributes& attributes) {
  return emit_many(name, inputs, results, attributes);
}

Shape ForwardBuilder::shape(TensorId x) const {
  const auto extents = graph_.graph().shape(x);
  return {extents.begin(), extents.end()};
}

int64_t ForwardBuilder::extent(TensorId x, int64_t dim) const {
  const auto extents = graph_.graph().shape(x);
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t wrapped = dim < 0 ? dim + rank : dim;
  return wrapped < 0 || wrapped >= rank ? 1 : extents[static_cast<size_t>(wrapped)];
}

int64_t ForwardBuilder::wrap(int64_t dim, int64_t rank) {
  const int64_t wrapped = dim < 0 ? dim + rank : dim;
  if (wrapped < 0 || wrapped >= std::max<int64_t>(rank, 1)) {
    fail(fmt::format("dimension {} does not exist in a tensor of rank {}", dim, rank));
    return 0;
  }
  return wrapped;
}

Result<Graph> ForwardBuilder::finish() {
  if (error_) return *error_;
  return graph_.finish();
}

}  // namespace forerun
