// Chains of elementwise kernels fused into one, as compilers (TorchInductor, XLA) do.
//
// Source: what memory-bound kernels move: between two fused ops the result is neither written nor read again. Assumed: ops
// that follow one another on the stream over tensors of one size feed each other; matrix products, convolutions and norms
// stay kernels of their own; one launch for a chain. epilogues=1: a chain behind one of those runs in its last kernel too
// (convolution + ReLU, norm + ReLU), which writes the chain's result in place of its own.
#include <algorithm>
#include <cmath>

#include "derive/op_class.h"
#include "whatif/kernel_insertion.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {
namespace {

struct ElementwiseKernel {
  TaskId task;
  int64_t elements = 0;
  double passes = 0;  // tensors read and written
};

// Products, convolutions and norms can end with elementwise work.
bool takes_epilogue(const EditableIteration& edited, TaskId kernel) {
  const std::optional<TracedOp> op = edited.op_of(kernel);
  if (!op || !op->name.starts_with("aten::")) return false;
  const OpClass cls = op_class("aten." + op->name.substr(6) + ".default");
  return cls == OpClass::gemm || cls == OpClass::convolution || cls == OpClass::normalization;
}

std::optional<ElementwiseKernel> elementwise(const EditableIteration& edited, TaskId kernel) {
  const std::optional<TracedOp> op = edited.op_of(kernel);
  if (!op || !op->name.starts_with("aten::") || edited.graph().phase(kernel) == StepPhase::update) return std::nullopt;
  if (op_class("aten." + op->name.substr(6) + ".default") != OpClass::elementwise) return std::nullopt;
  ElementwiseKernel found{kernel, 0, 1};
  for (size_t i = 0; i < op->inputs.size(); ++i) found.elements = std::max(found.elements, op->elements(i));
  for (size_t i = 0; i < op->inputs.size(); ++i) found.passes += op->elements(i) == found.elements ? 1 : 0;
  return found.elements > 0 ? std::optional(found) : std::nullopt;
}

}  // namespace

Status apply_fusion(EditableIteration& edited, const Parameters& parameters) {
  const bool epilogues = parameters.text("epilogues", "0") == "1";
  const TaskGraph& graph = edited.graph();
  GraphEdit edit(graph);
  std::vector<TaskId> gone;
  std::vector<ElementwiseKernel> chain;
  TaskId before;  // the kernel before the chain
  const auto finish = [&] {
    const bool absorbed = epilogues && !chain.empty() && before.valid() && takes_epilogue(edited, before);
    const double links = static_cast<double>(chain.size()) - (absorbed ? 0 : 1);  // each: one write and one read less
    if (links > 0) {
      double passes = 0, time = 0;
      for (const ElementwiseKernel& one : chain) {
        passes += one.passes;
        time += static_cast<double>(graph.duration(one.task).value);
      }
      const double left = std::max(passes - 2 * links, absorbed ? 0.0 : 1.0);
      const TaskId kept = absorbed ? before : chain.front().task;
      const auto own = absorbed ? static_cast<double>(graph.duration(before).value) : 0.0;
      edit.set_duration(kept, Nanoseconds(std::llround(own + time * left / passes)));
      for (size_t i = absorbed ? 0 : 1; i < chain.size(); ++i) gone.push_back(chain[i].task);
    }
    chain.clear();
  };
  TaskId last;
  for (const TaskId kernel : select(graph, is_on_gpu())) {
    const auto found = elementwise(edited, kernel);
    const bool same_lane = last.valid() && graph.lane(kernel) == graph.lane(last);
    const bool follows = found && same_lane && !chain.empty() && chain.back().elements == found->elements &&
                         graph.phase(kernel) == graph.phase(chain.back().task);
    if (!follows) {
      finish();
      before = same_lane ? last : TaskId();
    }
    if (found) chain.push_back(*found);
    last = kernel;
  }
  finish();
  if (gone.empty()) return Error{"no two elementwise kernels follow one another", edited.trace().file, ""};
  remove_kernels(edit, gone);
  edited.assume(std::to_string(gone.size()) + " elementwise kernels fused into the one before them" +
                (epilogues ? ", products, convolutions and norms included" : "") +
                ": no intermediate is written or read");
  return edited.commit(edit);
}

}  // namespace forerun::whatif
