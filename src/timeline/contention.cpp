#include "timeline/contention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cost/collective/contention.h"
#include "timeline/simulator.h"

namespace forerun {
namespace {

constexpr int kMostRounds = 12;
constexpr double kSettled = 1e-4;  // of the longest time: what a round may still change

struct OverlapSpan {
  int64_t begin = 0, end = 0;
  size_t index = 0;  // of a kernel or of a contending task
};

int64_t overlap_of(const OverlapSpan& a, const OverlapSpan& b) {
  return std::min(a.end, b.end) - std::max(a.begin, b.begin);
}

// Calls `visit(kernel, task, overlap)` for every pair that overlaps. Kernels of all streams stand in order of their start.
template <class Visit>
void each_overlap(std::vector<OverlapSpan>& kernels, const std::vector<OverlapSpan>& tasks, const Visit& visit) {
  std::sort(kernels.begin(), kernels.end(),
            [](const OverlapSpan& a, const OverlapSpan& b) { return a.begin < b.begin; });
  std::vector<int64_t> latest;  // end of any kernel up to this one
  latest.reserve(kernels.size());
  for (const OverlapSpan& kernel : kernels) latest.push_back(std::max(kernel.end, latest.empty() ? 0 : latest.back()));
  for (const OverlapSpan& task : tasks) {
    const auto first = std::upper_bound(latest.begin(), latest.end(), task.begin);
    for (auto i = static_cast<size_t>(first - latest.begin()); i < kernels.size() && kernels[i].begin < task.end; ++i) {
      const int64_t overlap = overlap_of(kernels[i], task);
      if (overlap > 0) visit(kernels[i].index, task.index, overlap);
    }
  }
}

double lost(int64_t overlap, double factor) { return static_cast<double>(overlap) * (1 - 1 / factor); }

std::vector<TaskId> contending_kernels(const TaskGraph& graph) {
  std::vector<TaskId> kernels;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    if (graph.kind(task) == TaskKind::kernel && graph.lane_of(task).kind == LaneKind::gpu_stream)
      kernels.push_back(task);
  }
  return kernels;
}

}  // namespace

TaskGraph contended(const TaskGraph& graph, std::span<const ContendingTask> tasks) {
  TaskGraph now = graph;
  if (tasks.empty()) return now;
  const std::vector<TaskId> kernels = contending_kernels(graph);
  std::vector<Nanoseconds> alone(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) alone[i] = graph.duration(TaskId(i));
  Nanoseconds before{};
  for (int round = 0; round < kMostRounds; ++round) {
    const Simulation simulation = simulate(now);
    const double change = std::abs(static_cast<double>((simulation.end - before).value));
    if (round > 0 && change <= kSettled * static_cast<double>(simulation.end.value)) break;
    before = simulation.end;
    const auto span_of = [&](TaskId task, size_t index) {
      return OverlapSpan{simulation.start_of(task).value, simulation.end_of(now, task).value, index};
    };
    std::vector<OverlapSpan> computing, communicating;
    for (size_t i = 0; i < kernels.size(); ++i) computing.push_back(span_of(kernels[i], i));
    for (size_t i = 0; i < tasks.size(); ++i) communicating.push_back(span_of(tasks[i].task, i));
    std::vector<double> kernel_lost(kernels.size(), 0), task_lost(tasks.size(), 0);
    each_overlap(computing, communicating, [&](size_t kernel, size_t task, int64_t overlap) {
      kernel_lost[kernel] += lost(overlap, 1 + (kComputationSlowdown - 1) * tasks[task].traffic);
      task_lost[task] += lost(overlap, tasks[task].slowed);
    });
    std::vector<Nanoseconds> longer = alone;
    const auto lengthen = [&](TaskId task, double by, double most) {
      const auto base = static_cast<double>(alone[task.value].value);
      longer[task.value] = Nanoseconds(std::llround(std::min(base + by, base * most)));
    };
    for (size_t i = 0; i < kernels.size(); ++i) lengthen(kernels[i], kernel_lost[i], kComputationSlowdown);
    for (size_t i = 0; i < tasks.size(); ++i) lengthen(tasks[i].task, task_lost[i], tasks[i].slowed);
    now = graph.with_durations(std::move(longer));
  }
  return now;
}

std::string contention_text() {
  return fmt::format("beside one another, collectives take up to {:.2f} and computation up to {:.2f} times as long",
                     kCollectiveSlowdown, kComputationSlowdown);
}

}  // namespace forerun
