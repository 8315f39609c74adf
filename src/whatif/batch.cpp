// Another batch size: what forward and backward kernels do beyond their floor grows with the batch.
//
// Source: work is proportional to the batch. Assumed: kernels keep their efficiency, the update and the host's part do not
// depend on the batch, and so does communication of gradients; data loading grows with the batch.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "whatif/optimizations.h"
#include "whatif/setup_change.h"

namespace forerun::whatif {
namespace {

// A model's batch is known: so many times as large it is a number of samples, or there is none such.
Status whole_batch(const EditableIteration& edited, double factor) {
  if (edited.is_traced()) return {};
  const double samples = static_cast<double>(edited.model()->input.batch) * edited.batch_factor * factor;
  if (samples > 0.999 && std::abs(samples - std::round(samples)) < 1e-3 * samples) return {};
  return Error{fmt::format("{:g} times the batch is {:.4g} samples", factor, samples), "batch",
               "give a factor that makes a whole number of samples"};
}

}  // namespace

Status apply_batch(EditableIteration& edited, const Parameters& parameters) {
  const Result<double> factor = parameters.positive("factor", 2);
  if (!factor) return factor.error().within("batch");
  if (edited.model() != nullptr && edited.timer() != nullptr) {
    if (const Status status = whole_batch(edited, *factor); !status.ok()) return status;
    Status derived = change_setup(edited, edited.setup, edited.batch_factor * *factor);
    if (derived.ok()) edited.assume("the iteration derived again with the other batch; the host's part stays");
    if (derived.ok()) return derived;
    if (!edited.is_traced()) return derived.error().within("batch");  // nothing measured that could be scaled
  }
  constexpr Nanoseconds kFloor(2000);  // a kernel that does next to nothing
  const TaskGraph& graph = edited.graph();
  GraphEdit edit(graph);
  const Predicate computation =
      both(both(is_on_gpu(), negated(is_kind(TaskKind::communication))), negated(in_phase(StepPhase::update)));
  for (const TaskId task : select(graph, computation)) {
    const Nanoseconds beyond = std::max(Nanoseconds(0), graph.duration(task) - kFloor);
    edit.set_duration(task, beyond);
    edit.scale(std::array{task}, *factor);
    edit.set_duration(task, edit.duration(task) + graph.duration(task) - beyond);
  }
  edit.scale(select(graph, is_kind(TaskKind::data_loading)), *factor);
  edited.assume("kernels of forward and backward grow with the batch; update, host and communication do not");
  return edited.commit(edit);
}

}  // namespace forerun::whatif
