#include "derive/layout.h"

#include <algorithm>

#include "derive/op_class.h"
#include "derive/stride_rules.h"

namespace forerun {
namespace {

using Extents = std::span<const int64_t>;

bool is_image(Extents shape) { return shape.size() == 4 && shape[1] > 1 && shape[2] * shape[3] > 1; }

Shape copy_of(Extents extents) { return {extents.begin(), extents.end()}; }

}  // namespace

Layout layout_of(Extents shape, Extents strides) {
  Layout layout;
  int64_t elements = 1;
  int64_t reach = 1;  // elements from the first to the last
  int64_t outer = INT64_MAX;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] <= 1) continue;
    if (strides[d] == 0) {
      layout.expanded = true;
      continue;
    }
    elements *= shape[d];
    reach += (shape[d] - 1) * strides[d];
    if (strides[d] > outer) layout.permuted = true;
    outer = strides[d];
  }
  layout.sliced = reach > elements;
  if (layout.permuted && is_image(shape) && strides[1] == 1 && strides[3] >= shape[1] && strides[2] >= strides[3]) {
    layout.channels_last = true;
    layout.permuted = false;
  }
  return layout;
}

LayoutTracker::LayoutTracker(const Graph& graph, bool channels_last, Evidence evidence)
    : graph_(graph), channels_last_(channels_last), evidence_(evidence), inferred_(graph.tensors().size()) {}

bool LayoutTracker::has_strides(TensorId tensor) const {
  return evidence_ == Evidence::strides && !graph_.strides(tensor).empty();
}

Shape LayoutTracker::strides_of(TensorId tensor) const {
  if (has_strides(tensor)) return copy_of(graph_.strides(tensor));
  if (!inferred_[tensor.value].empty()) return inferred_[tensor.value];
  const Shape shape = copy_of(graph_.shape(tensor));
  return channels_last_ && shape.size() == 4 ? derive::channels_last_strides(shape) : derive::contiguous_strides(shape);
}

Layout LayoutTracker::of(TensorId tensor) const {
  if (has_strides(tensor)) return layout_of(graph_.shape(tensor), graph_.strides(tensor));
  return layout_of(graph_.shape(tensor), strides_of(tensor));
}

void LayoutTracker::pass(const Op& op) {
  const auto outputs = graph_.outputs(op);
  const auto inputs = graph_.inputs(op);
  const auto is_input = [&](TensorId id) { return std::find(inputs.begin(), inputs.end(), id) != inputs.end(); };
  const auto missing = [&](TensorId id) { return !has_strides(id) && !graph_.shape(id).empty(); };
  if (std::none_of(outputs.begin(), outputs.end(), missing)) return;
  derive::Values operands;
  // The lists of foreach ops are long, and their results are not looked at.
  for (const TensorId id : inputs.first(std::min<size_t>(inputs.size(), 8))) {
    auto state = derive::Value::make();
    state->sizes = copy_of(graph_.shape(id));
    state->strides = strides_of(id);
    operands.push_back(std::move(state));
  }
  const std::string& name = graph_.name(op);
  for (size_t place = 0; place < outputs.size(); ++place) {
    const TensorId id = outputs[place];
    // What is written in place stays where it is; a view of the same shape is another tensor to look at.
    if (!missing(id) || (is_input(id) && op_class(name) != OpClass::view)) continue;
    inferred_[id.value] =
        derive::result_strides(name, graph_.attributes(op), operands, copy_of(graph_.shape(id)), place);
  }
}

}  // namespace forerun
