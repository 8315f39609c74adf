// Runs a TaskGraph: when does every task begin?
//
// A task is ready when everything it depends on has been started and, on an ordered lane, the lane's task before it
// too. Again and again `schedule` picks one of the ready tasks; it begins at the latest of what its dependencies allow
// and the moment its lane is free, and its lane is free again when it has ended and its gap has passed. The default
// schedule picks the earliest possible start; of equals the highest priority, then the smallest id, so that two runs
// give the same bits. Time is whole nanoseconds from zero. Where all lanes are ordered no choice is left and one pass
// over the tasks does it. reference_simulator.h does the same the slow and obvious way.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "timeline/task_graph.h"

namespace forerun {

struct Simulation {
  std::vector<Nanoseconds> start;  // by TaskId
  Nanoseconds end{};               // of the last task to end; gaps after it do not count

  [[nodiscard]] Nanoseconds start_of(TaskId id) const { return start[id.value]; }
  [[nodiscard]] Nanoseconds end_of(const TaskGraph& graph, TaskId id) const {
    return start[id.value] + graph.duration(id);
  }
};

struct ReadyTask {
  TaskId task;
  Nanoseconds start;  // if it were picked now
  int32_t priority = 0;
  LaneId lane;
};

// The index of the one to run next; `ready` is never empty, and in the order of ids.
using Schedule = std::function<size_t(std::span<const ReadyTask> ready)>;

// The default.
size_t earliest_start(std::span<const ReadyTask> ready);

Simulation simulate(const TaskGraph& graph);
Simulation simulate(const TaskGraph& graph, const Schedule& schedule);

// When a lane is free after a task that starts at `start`. A gap below zero frees it early, never before the start.
constexpr Nanoseconds lane_free(Nanoseconds start, Nanoseconds duration, Nanoseconds gap) {
  const Nanoseconds after = start + duration + gap;
  return after < start ? start : after;
}

// The earliest start that a dependency allows.
constexpr Nanoseconds allowed_by(const Dependency& dependency, Nanoseconds start, Nanoseconds duration) {
  return (dependency.anchor == Anchor::start ? start : start + duration) + dependency.lag;
}

}  // namespace forerun
