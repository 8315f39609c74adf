// The critical path of a trace, and what would move it.
//
// The trace becomes a task graph, the graph is simulated as it was, and the chain of tasks that decided the end is summed
// by what they are. For the names that take most of the path the graph is simulated again with them twice as fast: the
// time that really saves, which is less than half their share where another chain takes over.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "timeline/critical_path.h"
#include "timeline/dependency_graph.h"

namespace forerun {

struct PathShare {
  std::string name;
  TaskKind kind = TaskKind::host_op;
  int64_t tasks = 0;
  Nanoseconds time;  // on the path
};

struct Lever {
  std::string name;
  TaskKind kind = TaskKind::host_op;
  Nanoseconds on_path;
  Nanoseconds saved;  // where all tasks of this name took half as long
};

struct TracePath {
  Nanoseconds measured, simulated;  // from the first to the last event
  int64_t tasks = 0;                // on the path
  Nanoseconds host, gpu, communication, waits;
  std::vector<PathShare> names;                 // by time
  std::vector<Lever> levers;                    // by what is saved
  std::vector<std::vector<EventIndex>> events;  // on the path, by rank, in order
  DependencyCounts counts;
};

struct PathOptions {
  size_t levers = 6;  // names to try twice as fast
};

Result<TracePath> path_of(std::span<const Trace> ranks, const PathOptions& options);

}  // namespace forerun
