// contended(): communication and computation that run beside one another take longer.
//
// Durations depend on the overlap and the overlap on durations: a few rounds of simulating and lengthening settle it. Work
// that proceeds at 1/f of its speed for an overlap o needs o (1 - 1/f) more. Kernels that overlap several messages at once
// are slowed down by each. Left out: contention of kernels with one another.
#include <algorithm>
#include <cmath>

#include "timeline/simulator.h"
#include "whatif/gradient_exchange.h"

namespace forerun::whatif {
namespace {

struct Span {
  int64_t begin = 0, end = 0;
  size_t index = 0;  // of a kernel or of a contending task
};

int64_t overlap_of(const Span& a, const Span& b) { return std::min(a.end, b.end) - std::max(a.begin, b.begin); }

// Calls `visit(kernel, task, overlap)` for every pair that overlaps. Kernels of all streams stand in order of their start.
template <class Visit>
void each_overlap(std::vector<Span>& kernels, const std::vector<Span>& tasks, const Visit& visit) {
  std::sort(kernels.begin(), kernels.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<int64_t> latest;  // end of any kernel up to this one
  for (const Span& kernel : kernels) latest.push_back(std::max(kernel.end, latest.empty() ? 0 : latest.back()));
  for (const Span& task : tasks) {
    const auto first = std::upper_bound(latest.begin(), latest.end(), task.begin);
    for (auto i = static_cast<size_t>(first - latest.begin()); i < kernels.size() && kernels[i].begin < task.end; ++i) {
      const int64_t overlap = overlap_of(kernels[i], task);
      if (overlap > 0) visit(kernels[i].index, task.index, overlap);
    }
  }
}

double lost(int64_t overlap, double factor) { return static_cast<double>(overlap) * (1 - 1 / factor); }

}  // namespace

Result<TaskGraph> contended(const TaskGraph& graph, std::span<const ContendingTask> tasks) {
  TaskGraph now = graph;
  if (tasks.empty()) return now;
  std::vector<TaskId> kernels;
  for (const TaskId task : select(graph, is_kind(TaskKind::kernel))) {
    if (graph.lane_of(task).kind == LaneKind::gpu_stream) kernels.push_back(task);
  }
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const Simulation simulation = simulate(now);
    const auto span_of = [&](TaskId task, size_t index) {
      return Span{simulation.start_of(task).value, simulation.end_of(now, task).value, index};
    };
    std::vector<Span> computing, communicating;
    for (size_t i = 0; i < kernels.size(); ++i) computing.push_back(span_of(kernels[i], i));
    for (size_t i = 0; i < tasks.size(); ++i) communicating.push_back(span_of(tasks[i].task, i));
    std::vector<double> kernel_lost(kernels.size(), 0), task_lost(tasks.size(), 0);
    each_overlap(computing, communicating, [&](size_t kernel, size_t task, int64_t overlap) {
      kernel_lost[kernel] += lost(overlap, 1 + (kComputationSlowdown - 1) * tasks[task].traffic);
      task_lost[task] += lost(overlap, tasks[task].slowed);
    });
    GraphEdit edit(graph);
    const auto lengthen = [&](TaskId task, double by, double most) {
      const auto base = static_cast<double>(graph.duration(task).value);
      edit.set_duration(task, Nanoseconds(std::llround(std::min(base + by, base * most))));
    };
    for (size_t i = 0; i < kernels.size(); ++i) lengthen(kernels[i], kernel_lost[i], kComputationSlowdown);
    for (size_t i = 0; i < tasks.size(); ++i) lengthen(tasks[i].task, task_lost[i], tasks[i].slowed);
    auto built = edit.build();
    if (!built) return built.error();
    now = std::move(*built);
  }
  return now;
}

}  // namespace forerun::whatif
