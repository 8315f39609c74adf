// The critical path of a simulation: the chain of tasks, each of which began when it did because of the one before it.
#pragma once

#include <vector>

#include "timeline/simulator.h"

namespace forerun {

enum class Reason : uint8_t { beginning, lane, dependency };

struct CriticalTask {
  TaskId task;
  Reason reason = Reason::beginning;  // why it did not begin earlier
  Nanoseconds wait{};                 // lag or gap between what held it back and its start
};

// From the first task to the one that ends last. Where several reasons hold a dependency is named before the lane, and
// of several dependencies the first. The durations and waits of a path add up to at most the simulation's end; less
// where a task began before the one that held it back had ended.
std::vector<CriticalTask> critical_path(const TaskGraph& graph, const Simulation& simulation);

}  // namespace forerun
