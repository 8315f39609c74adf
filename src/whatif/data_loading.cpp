// Data loading in `workers` processes of its own, beside the training.
//
// Source: PyTorch's DataLoader with num_workers. Assumed: loading a batch takes a worker as long as it took the training
// thread, workers do not slow each other down, and taking a batch over costs 0.1 ms; where workers together are slower than
// the iteration, it waits for them.
#include <algorithm>
#include <array>

#include "whatif/optimizations.h"

namespace forerun::whatif {

Status apply_data_loading(EditableIteration& edited, const Parameters& parameters) {
  const Result<double> workers = parameters.positive("workers", 4);
  if (!workers) return workers.error().within("data_loading");
  const std::vector<TaskId> loading = select(edited.graph(), is_kind(TaskKind::data_loading));
  if (loading.empty()) {
    return Error{"no data loading in the trace", edited.trace().file,
                 "PyTorch's DataLoader is seen as enumerate(DataLoader)"};
  }
  const auto iterations = static_cast<double>(std::max<size_t>(edited.iterations(), 1));
  double batch = 0;  // nanoseconds of an iteration
  for (const TaskId task : loading) {
    batch += static_cast<double>((edited.graph().duration(task) + edited.graph().gap(task)).value) / iterations;
  }
  const double share = std::min(1.0, 100'000 / std::max(batch, 1.0));
  GraphEdit edit(edited.graph());
  edit.scale(loading, share);
  edit.scale_gaps(loading, share);
  if (Status status = edited.commit(edit); !status.ok()) return status;
  edited.assume("batches of " + std::to_string(static_cast<int64_t>(batch / 1e6)) + " ms loaded by " +
                parameters.text("workers", "4") + " workers beside the training");
  const auto now = edited.iteration_time();
  if (!now) return now.error();
  const double wait = batch / *workers - static_cast<double>(now->value);
  if (wait <= 0) return {};
  GraphEdit waiting(edited.graph());
  const std::vector<TaskId> taken = select(edited.graph(), is_kind(TaskKind::data_loading));
  waiting.scale(taken, 1 + wait / std::max(1.0, batch * share));
  return edited.commit(waiting);
}

}  // namespace forerun::whatif
