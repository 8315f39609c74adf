#include "compile/node_builder.h"

#include <algorithm>
#include <utility>

namespace forerun::compile {

ValueId NodeBuilder::value(DType dtype, int64_t elements) {
  joint_.values.push_back({.made_by = NodeId(joint_.nodes.size()), .dtype = dtype, .elements = elements});
  return ValueId(joint_.values.size() - 1);
}

ValueId NodeBuilder::pointwise(std::vector<Read> reads, int64_t elements, DType dtype, uint8_t flags) {
  const ValueId made = value(dtype, elements);
  joint_.nodes.push_back({.kind = NodeKind::pointwise,
                          .flags = flags,
                          .backward = backward_,
                          .op = op_,
                          .elements = elements,
                          .steps = steps_,
                          .reads = std::move(reads),
                          .makes = {made}});
  return made;
}

ValueId NodeBuilder::reduction(std::vector<Read> reads, int64_t results, int64_t reduced, bool inner, DType dtype,
                               bool spread) {
  const ValueId made = value(dtype, results);
  joint_.nodes.push_back(
      {.kind = NodeKind::reduction,
       .flags = static_cast<uint8_t>(spread ? kComputedAgain | kFusible | kSpread : kComputedAgain | kFusible),
       .backward = backward_,
       .inner = inner,
       .op = op_,
       .elements = results,
       .reduced = reduced,
       .reads = std::move(reads),
       .makes = {made}});
  return made;
}

ValueId NodeBuilder::scatter(std::vector<Read> reads, int64_t elements, DType dtype, Meeting meeting) {
  const int64_t table = joint_.value(reads.back().value).elements;
  const ValueId made = pointwise(std::move(reads), elements, dtype, kScatters);
  joint_.values[made.value].elements = table;  // what it adds into is its result
  joint_.nodes.back().meeting = meeting;
  return made;
}

std::vector<ValueId> NodeBuilder::library(std::vector<Read> reads, ValueId beside, size_t outputs) {
  const Op& op = graph_.op(op_);
  Node node = {.kind = NodeKind::library, .flags = 0, .backward = backward_, .op = op_, .reads = std::move(reads)};
  node.beside = beside;
  for (const TensorId output : graph_.outputs(op).first(std::min<size_t>(outputs, op.output_count))) {
    node.makes.push_back(value(graph_.tensor(output).dtype, graph_.element_count(output)));
    joint_.values.back().tensor = output;
    node.elements = std::max(node.elements, graph_.element_count(output));
  }
  std::vector<ValueId> made = node.makes;
  joint_.nodes.push_back(std::move(node));
  return made;
}

ValueId NodeBuilder::product(std::vector<Read> reads, int64_t elements) {
  const ValueId made = library(std::move(reads)).front();
  joint_.nodes.back().elements = joint_.values[made.value].elements = elements;
  return made;
}

}  // namespace forerun::compile
