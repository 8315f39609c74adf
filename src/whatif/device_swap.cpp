// The same iteration on another GPU: gpu:name=A100.
//
// Source: the cost model for both devices (cost/hybrid, and cost/analytic for the other's peak rates and bandwidth): each
// call's measured kernels times the ratio for its shapes. Assumed: the same host, the same choice of kernels, communication
// as before, and that everything fits the other's memory.
#include <array>

#include "derive/precision_support.h"
#include "whatif/optimizations.h"
#include "whatif/setup_change.h"

namespace forerun::whatif {
namespace {

// Without the forward pass: op by op, and by the bandwidths where the cost model does not know the op.
Status swap_by_op(EditableIteration& edited, const OpTimer& other) {
  const double memory = edited.timer()->device().memory_bandwidth / other.device().memory_bandwidth;
  GraphEdit edit(edited.graph());
  for (const TaskId task : select(edited.graph(), is_on_gpu())) {
    if (edited.graph().kind(task) == TaskKind::communication) continue;
    const std::optional<TracedOp> op = edited.op_of(task);
    const auto before = op ? edited.timer()->seconds(*op, edited.variant) : std::nullopt;
    const auto after = op ? other.seconds(*op, edited.variant) : std::nullopt;
    edit.scale(std::array{task}, before && after ? *after / *before : memory);
  }
  return edited.commit(edit);
}

}  // namespace

Status apply_gpu(EditableIteration& edited, const Parameters& parameters) {
  if (edited.timer() == nullptr)
    return Error{"the cost model is not there", "data folder", "train it: forerun train hybrid"};
  if (!parameters.has("name")) return Error{"which GPU?", "gpu", "name one of `forerun devices`: gpu:name=a100_80gb"};
  auto other = edited.timer()->on(parameters.text("name"));
  if (!other) return other.error();
  if (Status status = derive::check_precision(edited.variant.precision, other->device()); !status.ok()) {
    return status.error().within("--apply gpu");
  }
  if (std::string caveat = derive::precision_caveat(edited.variant.precision, other->device()); !caveat.empty()) {
    edited.assume(std::move(caveat));
  }
  const Status status = edited.model() != nullptr ? change_setup(edited, edited.setup, edited.batch_factor, *other)
                                                  : swap_by_op(edited, *other);
  if (!status.ok()) return status;
  edited.assume("on a " + other->device().name + " in place of a " + edited.timer()->device().name +
                " with the same host; kernels by the ratio of both cost models");
  edited.use_timer(std::move(*other));
  return {};
}

}  // namespace forerun::whatif
