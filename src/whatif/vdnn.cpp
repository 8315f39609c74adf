// vDNN: the inputs of convolutions move to host memory after their forward use and come back before the backward one.
//
// Source: Rhu et al., "vDNN: Virtualized Deep Neural Networks", its policy vDNN_conv, as Daydream models it: a copy out
// beside each convolution, which the next one waits for, and a copy in that starts with the convolution before it in the
// backward pass. Assumed: gb_per_s=25 either way (PCIe 4.0 x16, pinned memory), copies beside kernels for free. Saves memory.
#include "whatif/kernel_insertion.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {
namespace {

struct ConvolutionCall {
  TaskId first, last;  // kernels
  double bytes = 0;    // of the input
};

// One for each op, in the order of the stream.
std::vector<ConvolutionCall> convolutions(const EditableIteration& edited, StepPhase phase) {
  std::vector<ConvolutionCall> found;
  uint64_t before = UINT64_MAX;
  uint32_t instance = kNoLink;
  for (const TaskId kernel : select(edited.graph(), both(is_kind(TaskKind::kernel), in_phase(phase)))) {
    const std::optional<TracedOp> op = edited.op_of(kernel);
    const bool convolves = op && op->name.find("conv") != std::string::npos;
    const bool same = convolves && edited.op_key(kernel) == before && edited.graph().op_instance(kernel) == instance;
    const size_t input = phase == StepPhase::backward ? 1 : 0;
    if (same && !found.empty()) {
      found.back().last = kernel;
    } else if (convolves && op->elements(input) > 0) {
      found.push_back({kernel, kernel, 4.0 * static_cast<double>(op->elements(input))});
    }
    before = convolves ? edited.op_key(kernel) : UINT64_MAX;
    instance = edited.graph().op_instance(kernel);
  }
  return found;
}

}  // namespace

Status apply_vdnn(EditableIteration& edited, const Parameters& parameters) {
  const Result<double> rate = parameters.positive("gb_per_s", 25);
  if (!rate) return rate.error().within("vdnn");
  if (Status status = check_eager(edited, "vdnn"); !status.ok()) return status;
  const std::vector<ConvolutionCall> forward = convolutions(edited, StepPhase::forward);
  const std::vector<ConvolutionCall> backward = convolutions(edited, StepPhase::backward);
  if (forward.empty() || edited.iterations() > 1) {
    return Error{forward.empty() ? "no convolution with recorded shapes" : "more than one iteration in the trace",
                 edited.trace().file, "vdnn takes a trace of one step of a convolutional network"};
  }
  GraphEdit edit(edited.graph());
  const LaneId out = edit.add_lane({LaneKind::gpu_stream, 0, -1, true, "offload"});
  const LaneId in = edit.add_lane({LaneKind::gpu_stream, 0, -2, true, "prefetch"});
  const auto copy = [&](LaneId lane, double bytes, StepPhase phase, const char* name) {
    Task task;
    task.lane = lane;
    task.kind = TaskKind::memcpy;
    task.phase = phase;
    task.name = edit.name(name);
    task.duration = Nanoseconds(static_cast<int64_t>(bytes / *rate));
    task.event = task.op_instance = kNoLink;
    return edit.append(task);
  };
  double bytes = 0;
  for (size_t i = 0; i < forward.size(); ++i) {
    const TaskId moved = copy(out, forward[i].bytes, StepPhase::forward, "offload");
    edit.depend(moved, {forward[i].first, Anchor::start, Nanoseconds(0)});
    if (i + 1 < forward.size()) edit.depend(forward[i + 1].first, {moved, Anchor::end, Nanoseconds(0)});
    bytes += forward[i].bytes;
  }
  for (size_t i = 0; i < backward.size(); ++i) {
    const TaskId moved = copy(in, backward[i].bytes, StepPhase::backward, "prefetch");
    edit.depend(moved, {(i == 0 ? forward.back() : backward[i - 1]).first, Anchor::start, Nanoseconds(0)});
    edit.depend(backward[i].first, {moved, Anchor::end, Nanoseconds(0)});
  }
  edited.assume(std::to_string(static_cast<int64_t>(bytes / 1e6)) + " MB of " + std::to_string(forward.size()) +
                " convolutions' inputs copied out and in at " + parameters.text("gb_per_s", "25") + " GB/s");
  return edited.commit(edit);
}

}  // namespace forerun::whatif
