#include "timeline/host_gpu_timeline.h"

#include <algorithm>

#include "base/check.h"
#include "cost/host/cuda_graph.h"
#include "cost/host/parameters_in_place.h"

namespace forerun {
namespace {

// Where both lanes stand.
struct Lanes {
  int64_t host = 0;
  int64_t gpu = 0;  // when the stream is free again
};

// With launches spread evenly over the host time h and equal kernels, one of three chains decides when the last kernel
// ends: the stream was busy until then, the first launch, or the last launch.
void issue(const LaneOp& op, Nanoseconds launch_gap, Lanes& lanes) {
  const int64_t gap = kernel_gap(op.captured, launch_gap).value;
  const int64_t start = lanes.host;
  lanes.host += op.host.value;
  if (op.kernels > 0) {
    const int64_t k = op.kernels;
    const int64_t occupied = op.gpu.value - op.overlapped.value + k * gap;
    lanes.gpu = std::max({lanes.gpu + occupied, start + op.host.value / k + occupied,
                          start + op.host.value + (occupied - occupied * (k - 1) / k)});
  }
  if (op.waits) lanes.host = std::max(lanes.host, lanes.gpu);
}

// One iteration: when both lanes were done with each phase.
std::array<int64_t, 3> run_iteration(std::span<const LaneOp> ops, const LaneSetup& setup, Lanes& lanes) {
  lanes.host += setup.per_iteration.value;
  std::array<int64_t, 3> done{-1, -1, -1};
  for (const LaneOp& op : ops) {
    issue(op, setup.gap, lanes);
    done[static_cast<size_t>(op.phase)] = std::max(lanes.host, lanes.gpu);
  }
  return done;
}

Bottleneck verdict(std::span<const LaneOp> ops, const IterationTiming& times) {
  const double share =
      static_cast<double>(times.gpu_busy.value) / static_cast<double>(std::max<int64_t>(1, times.iteration.value));
  if (share < kGpuBoundShare) return Bottleneck::host;
  int64_t compute = 0;
  int64_t memory = 0;
  for (const LaneOp& op : ops) {
    if (op.bound == Bound::compute) compute += op.gpu.value;
    if (op.bound == Bound::memory) memory += op.gpu.value;
  }
  return compute >= memory ? Bottleneck::compute : Bottleneck::memory;
}

}  // namespace

std::string_view name_of(Bottleneck verdict) {
  switch (verdict) {
    case Bottleneck::compute: return "compute";
    case Bottleneck::memory: return "memory";
    case Bottleneck::host: return "host";
  }
  return "?";
}

IterationTiming host_gpu_timeline(std::span<const LaneOp> ops, const LaneSetup& setup) {
  CHECK(setup.most_iterations >= 3, "the steady state needs three iterations to show");
  IterationTiming times;
  times.host_busy = setup.per_iteration;
  for (const LaneOp& op : ops) {
    CHECK(op.host.value >= 0 && op.gpu >= op.overlapped && op.overlapped.value >= 0 && op.kernels >= 0,
          "a task of negative length");
    times.host_busy += op.host;
    times.gpu_busy += op.gpu;
  }
  Lanes lanes;
  int64_t end = 0;
  int64_t period = -1;
  std::array<int64_t, 3> done{};
  for (int i = 0; i < setup.most_iterations; ++i) {
    const int64_t begin = end;
    const int64_t period_before = period;
    // The lead of one lane over the other, if it repeats, makes the iterations repeat.
    const int64_t lead_before = lanes.host - lanes.gpu;
    done = run_iteration(ops, setup, lanes);
    end = std::max(lanes.host, lanes.gpu);
    period = end - begin;
    times.simulated = i + 1;
    int64_t phase_begin = begin;
    for (size_t p = 0; p < done.size(); ++p) {
      const int64_t phase_end = done[p] < 0 ? phase_begin : std::max(done[p], phase_begin);
      times.phases[p] = Nanoseconds(phase_end - phase_begin);
      phase_begin = phase_end;
    }
    const bool same_lead = lanes.host - lanes.gpu == lead_before;
    const bool gpu_falls_behind = period == period_before && lanes.gpu > lanes.host;
    if (i > 0 && (same_lead || gpu_falls_behind) && period == period_before) break;
  }
  times.iteration = Nanoseconds(period);
  times.bound = verdict(ops, times);
  return times;
}

std::vector<KernelSpan> kernel_spans(std::span<const LaneOp> ops, const LaneSetup& setup) {
  std::vector<KernelSpan> spans;
  spans.reserve(ops.size());
  Lanes lanes{.host = setup.per_iteration.value};
  for (const LaneOp& op : ops) {
    const int64_t launched = lanes.host + op.host.value / std::max(1, op.kernels);
    const int64_t begin = std::max(lanes.gpu, launched);
    issue(op, setup.gap, lanes);
    const bool runs = op.kernels > 0;
    spans.push_back({Nanoseconds(begin),
                     Nanoseconds(runs ? std::max(begin, lanes.gpu - kernel_gap(op.captured, setup.gap).value) : begin),
                     runs ? op.gpu - op.overlapped : Nanoseconds()});
  }
  return spans;
}

Nanoseconds reference_host_gpu_timeline(std::span<const LaneOp> ops, const LaneSetup& setup, int iterations) {
  int64_t host = 0;
  int64_t stream_free = 0;
  int64_t end = 0;
  int64_t period = 0;
  for (int i = 0; i < iterations; ++i) {
    const int64_t begin = end;
    host += setup.per_iteration.value;
    for (const LaneOp& op : ops) {
      const int64_t k = op.kernels;
      for (int64_t j = 1; j <= k; ++j) {
        const int64_t launched = host + op.host.value * j / k;
        const int64_t occupied = op.gpu.value - op.overlapped.value;
        const int64_t length = occupied * j / k - occupied * (j - 1) / k;
        stream_free = std::max(stream_free, launched) + length + kernel_gap(op.captured, setup.gap).value;
      }
      host += op.host.value;
      if (op.waits) host = std::max(host, stream_free);
    }
    end = std::max(host, stream_free);
    period = end - begin;
  }
  return Nanoseconds(period);
}

bool loop_waits_after(const Graph& graph, size_t op, const LoopRules& rules) {
  const Phase phase = graph.ops()[op].phase;
  const Phase next = op + 1 < graph.op_count() ? graph.ops()[op + 1].phase : Phase::update;
  const bool before_batch = next == Phase::forward && phase != Phase::forward;
  const bool after_loss = next != Phase::backward && phase == Phase::backward;
  return (rules.waits_for_batch && before_batch) || (rules.waits_for_loss && after_loss);
}

std::vector<LaneOp> lane_ops(const Graph& graph, std::span<const OpCost> costs, const HostCosts& host) {
  CHECK(costs.size() == graph.op_count() && host.ops.size() == graph.op_count(), "one cost per op is needed");
  std::vector<LaneOp> ops;
  ops.reserve(graph.op_count());
  ValueReads values(graph);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    LaneOp lane{host.ops[i], costs[i].gpu, costs[i].kernels, false, op.phase, costs[i].bound, costs[i].overlapped};
    lane.waits = values.reads(op);
    lane.captured = costs[i].captured;
    ops.push_back(lane);
  }
  return ops;
}

std::vector<LaneOp> lane_ops(const Graph& graph, std::span<const OpCost> costs, const HostCosts& host,
                             const LoopRules& rules) {
  std::vector<LaneOp> ops = lane_ops(graph, costs, host);
  for (size_t i = 0; i < ops.size(); ++i) ops[i].waits |= loop_waits_after(graph, i, rules);
  if (host.loop.value > 0 || rules.waits_for_batch) {
    LaneOp loop;
    loop.host = host.loop;
    loop.waits = rules.waits_for_batch;
    loop.phase = Phase::update;
    ops.push_back(loop);
  }
  return ops;
}

}  // namespace forerun
