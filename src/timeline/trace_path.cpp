#include "timeline/trace_path.h"

#include <algorithm>
#include <map>

namespace forerun {
namespace {

using Key = std::pair<TaskKind, std::string>;

// The graph is the same afterwards.
void add_levers(TaskGraph& graph, const std::vector<PathShare>& names, size_t most, Nanoseconds before,
                std::vector<Lever>& levers) {
  std::vector<Nanoseconds> durations(graph.size());
  for (const PathShare& share : names) {
    if (levers.size() == most) break;
    const NameId named = graph.names()->find(share.name);
    for (size_t i = 0; i < graph.size(); ++i) {
      const TaskId task(i);
      const NameId name = graph.name(task);
      const bool same = name == named || (!name.valid() && share.name.empty());
      const bool halved = graph.kind(task) == share.kind && same;
      durations[i] = halved ? Nanoseconds(graph.duration(task).value / 2) : graph.duration(task);
    }
    graph.swap_durations(durations);
    levers.push_back({share.name, share.kind, share.time, before - simulate(graph).end});
    graph.swap_durations(durations);
  }
  std::stable_sort(levers.begin(), levers.end(), [](const Lever& a, const Lever& b) { return a.saved > b.saved; });
}

}  // namespace

Result<TracePath> path_of(std::span<const Trace> ranks, const PathOptions& options) {
  auto graph = dependency_graph(ranks);
  if (!graph) return graph.error();
  graph->measured_start = {};
  TaskGraph& tasks = graph->tasks;
  Simulation simulation = simulate(tasks);
  TracePath path;
  path.counts = graph->counts;
  path.simulated = simulation.end;
  for (const RankSteps& rank : graph->ranks) path.measured = std::max(path.measured, rank.measured_end);
  path.events.resize(ranks.size());
  std::map<Key, PathShare> shares;
  for (const CriticalTask& step : critical_path(tasks, simulation)) {
    const TaskKind kind = tasks.kind(step.task);
    const Nanoseconds duration = tasks.duration(step.task);
    ++path.tasks;
    path.waits += step.wait;
    (kind == TaskKind::communication ? path.communication : on_gpu(kind) ? path.gpu : path.host) += duration;
    const std::string& name = tasks.text(tasks.name(step.task));
    PathShare& share = shares[{kind, name}];
    share.name = name;
    share.kind = kind;
    ++share.tasks;
    share.time += duration;
    const auto rank = static_cast<size_t>(tasks.lane_of(step.task).rank);
    const uint32_t event = tasks.event(step.task);
    if (event != kNoLink && rank < path.events.size()) path.events[rank].push_back(event);
  }
  for (auto& [key, share] : shares) path.names.push_back(std::move(share));
  std::stable_sort(path.names.begin(), path.names.end(),
                   [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
  simulation.start = {};
  add_levers(tasks, path.names, options.levers, simulation.end, path.levers);
  return path;
}

}  // namespace forerun
