// The iteration captured once and launched as a CUDA graph: the host's part is gone.
//
// Source: CUDA graphs launch all kernels with one call. Assumed: shapes do not change and nothing in the iteration waits for
// the GPU, so that all of it can be captured; kernels and their gaps on the stream stay; data loading stays; a launch takes
// what cost/host/cuda_graph.h says.
#include <array>

#include "cost/host/cuda_graph.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {

Status apply_cuda_graphs(EditableIteration& edited, const Parameters&) {
  const TaskGraph& graph = edited.graph();
  GraphEdit edit(graph);
  std::vector<TaskId> issued;
  size_t kernels = 0;
  TaskId first;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    const TaskKind kind = graph.kind(task);
    kernels += on_gpu(kind) ? 1 : 0;
    if (graph.lane_of(task).kind != LaneKind::host_thread || kind == TaskKind::data_loading || kind == TaskKind::mark ||
        kind == TaskKind::sync) {
      continue;
    }
    issued.push_back(task);
    if (kind == TaskKind::launch && !first.valid()) first = task;
  }
  if (!first.valid()) return Error{"nothing is launched", edited.trace().file, "record CPU activities too"};
  edit.scale(issued, 0);
  edit.scale_gaps(issued, 0);
  const auto iterations = static_cast<int64_t>(edited.iterations());
  edit.set_duration(first, Nanoseconds(cuda_graph_launch(static_cast<int64_t>(kernels)).value / iterations));
  edited.assume("the whole iteration is one CUDA graph: fixed shapes, no wait for the GPU within it; one launch");
  return edited.commit(edit);
}

}  // namespace forerun::whatif
