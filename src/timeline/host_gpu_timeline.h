// The two-lane timeline: a host thread issues ops in order, one GPU stream runs their kernels in order, over
// back-to-back iterations; the iteration time is what repeats.
//
// Host: op i is busy for host[i]; its k kernels are launched evenly over that time, the last one at its end. An op with
// `waits` (a read of a result by the host) holds the host until the GPU has run everything issued before. GPU: a kernel
// starts when it is launched and the one before it has ended, and occupies the stream for its duration plus the gap to
// the next. Kernels of one op that run side by side occupy it for less than their durations' sum. Time is whole nanoseconds. A phase lasts from the moment both lanes are done with the phase before it until
// both are done with it, so that phases add up to the iteration. Left out: a bound on how far the host may run ahead
// (it does not change the period), further streams, data loading.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "cost/host/host.h"
#include "cost/op_cost.h"
#include "graph/graph.h"
#include "graph/training_loop.h"

namespace forerun {

struct LaneOp {
  Nanoseconds host;
  Nanoseconds gpu;  // sum of the kernels' durations
  int kernels = 0;
  bool waits = false;
  Phase phase = Phase::forward;
  Bound bound = Bound::none;
  Nanoseconds overlapped{};  // of gpu, what does not occupy the stream, as it runs beside other kernels of the op
  bool captured = false;     // its kernels are part of a CUDA graph
};

struct LaneSetup {
  Nanoseconds gap;            // between two kernels on the stream
  Nanoseconds per_iteration;  // host time besides the ops, at the start of each iteration
  int most_iterations = 32;   // simulated at most; the steady state is reached earlier unless ops wait
};

enum class Bottleneck : uint8_t { compute, memory, host };
std::string_view name_of(Bottleneck verdict);  // "compute", "memory", "host"

struct IterationTiming {
  Nanoseconds iteration;
  Nanoseconds gpu_busy;               // kernels only
  Nanoseconds host_busy;              // issuing only, not waiting
  std::array<Nanoseconds, 3> phases;  // by Phase; their sum is the iteration
  Bottleneck bound = Bottleneck::compute;
  int simulated = 0;  // iterations until the period repeated
};

// GPU busy below this share of the iteration: the host is the bottleneck.
constexpr double kGpuBoundShare = 0.9;

IterationTiming host_gpu_timeline(std::span<const LaneOp> ops, const LaneSetup& setup);

// When an op's kernels run: from the first's begin to the last's end, and for how long of that any of them does.
struct KernelSpan {
  Nanoseconds begin, end;
  Nanoseconds busy;
};
// Of every op, in an iteration that begins with both lanes idle; ops without kernels have empty spans.
std::vector<KernelSpan> kernel_spans(std::span<const LaneOp> ops, const LaneSetup& setup);

// The same, one kernel at a time over `iterations` iterations without looking for the steady state: slow and plain, to
// check host_gpu_timeline against. Gives the last iteration's period.
Nanoseconds reference_host_gpu_timeline(std::span<const LaneOp> ops, const LaneSetup& setup, int iterations);

// Ops of a graph with their costs.
std::vector<LaneOp> lane_ops(const Graph& graph, std::span<const OpCost> costs, const HostCosts& host);
// The same in a loop that waits for the GPU between ops, and a last one for what the loop does by itself where it does anything.
std::vector<LaneOp> lane_ops(const Graph& graph, std::span<const OpCost> costs, const HostCosts& host,
                             const LoopRules& rules);
// Whether the loop lets the host wait once it has issued an op: before each further micro-batch, after each backward pass.
bool loop_waits_after(const Graph& graph, size_t op, const LoopRules& rules);

}  // namespace forerun
