#include "derive/view_op.h"

#include <algorithm>

namespace forerun::derive {
namespace {

// A dim of a recorded op, which may be anything; the rank where it does not exist.
size_t checked_dim(const Attributes& attributes, std::string_view key, size_t rank) {
  const int64_t dim = attributes.get_int(key, 0);
  const int64_t wrapped = dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
  return wrapped < 0 || wrapped >= static_cast<int64_t>(rank) ? rank : static_cast<size_t>(wrapped);
}

ViewResult swapped(const TensorState& v, size_t a, size_t b) {
  if (a >= v.strides.size() || b >= v.strides.size()) return {};
  Shape strides = v.strides;
  std::swap(strides[a], strides[b]);
  return {ViewResult::strided, std::move(strides)};
}

ViewResult permuted(const TensorState& v, const Shape& dims) {
  const auto rank = static_cast<int64_t>(v.strides.size());
  Shape strides;
  for (const int64_t dim : dims) {
    if (dim < -rank || dim >= rank) return {};
    strides.push_back(v.strides[static_cast<size_t>(dim < 0 ? dim + rank : dim)]);
  }
  return {ViewResult::strided, std::move(strides)};
}

ViewResult without(const TensorState& v, size_t dim) {
  if (dim >= v.strides.size()) return {};
  Shape strides = v.strides;
  strides.erase(strides.begin() + static_cast<int64_t>(dim));
  return {ViewResult::strided, std::move(strides)};
}

ViewResult with_new_dim(const TensorState& v, size_t dim) {
  if (dim > v.strides.size()) return {};
  Shape strides = v.strides;
  const int64_t step = dim < v.sizes.size() ? v.sizes[dim] * v.strides[dim] : 1;
  strides.insert(strides.begin() + static_cast<int64_t>(dim), step);
  return {ViewResult::strided, std::move(strides)};
}

}  // namespace

ViewResult view_of(std::string_view op_name, const Attributes& attributes, const TensorState& v, const Shape& result) {
  const size_t rank = v.sizes.size();
  ViewResult view;
  if (op_name == "aten.detach.default" || op_name == "aten.alias.default") {
    view = {ViewResult::strided, v.strides};
  } else if (op_name == "aten.t.default" && rank == 2) {
    view = swapped(v, 0, 1);
  } else if (op_name == "aten.transpose.int") {
    view = swapped(v, checked_dim(attributes, "dim0", rank), checked_dim(attributes, "dim1", rank));
  } else if (op_name == "aten.permute.default") {
    view = permuted(v, attributes.get_ints("dims"));
  } else if (op_name == "aten.select.int" || (op_name == "aten.squeeze.dim" && result.size() < rank)) {
    view = without(v, checked_dim(attributes, "dim", rank));
  } else if (op_name == "aten.unsqueeze.default") {
    view = with_new_dim(v, checked_dim(attributes, "dim", rank + 1));
  } else if (op_name == "aten.view.default" || op_name == "aten._unsafe_view.default") {
    if (element_count(result) != element_count(v.sizes)) return {};
    std::optional<Shape> strides = view_strides(v, result);
    if (!strides) return {ViewResult::copied, {}};
    view = {ViewResult::strided, std::move(*strides)};
  }
  if (view.kind == ViewResult::strided && view.strides.size() != result.size()) return {};
  return view;
}

}  // namespace forerun::derive
