// From profiler traces to a TaskGraph: what each event had to wait for, so that the simulator, given durations alone,
// arrives at the times that were measured, and at other times when durations change.
//
// Source: Daydream's kinds of dependency (order on a host thread, order on a stream, launch -> kernel, kernel -> waiting
// host, host -> communication, communication -> computation), and: event record -> wait of another stream, the hand-over
// between the main thread and the autograd threads, a launch that waits for room in a stream's queue, and collectives
// that begin on all ranks together. Files tell few of these; the rest is inferred from the order of calls and from ends
// that coincide (dependency_sync.cpp, dependency_device.cpp).
//
// No measured start time goes into the graph, only durations, lags and gaps. Where several things could have held an
// event back, the one that came last decided; its lag is measured and the others get the trace's usual ones, so that a
// wait never turns into a constant. Left out: events launched before the trace began are held by their stream's order
// alone; sharing of the GPU between streams is in the measured durations.
#pragma once

#include <span>
#include <vector>

#include "ingest/trace/trace.h"
#include "timeline/iterations.h"
#include "timeline/simulator.h"
#include "timeline/task_graph.h"

namespace forerun {

struct DependencyCounts {
  int64_t device_work = 0;     // kernels, copies and fills
  int64_t linked = 0;          // of them, with a launch in the trace
  int64_t syncs_found = 0;     // waits of the host or of a stream that the file tells
  int64_t syncs_inferred = 0;  // that it does not tell
  int64_t queue_waits = 0;     // launches that waited for room in a stream's queue
  int64_t hand_overs = 0;      // between host threads
  int64_t communications = 0;  // kernels of collectives
  int64_t rendezvous = 0;      // collectives found on all ranks
  DependencyCounts& operator+=(const DependencyCounts& other);
};

// A collective that was found on all ranks: its kernel on each.
struct Rendezvous {
  std::vector<TaskId> kernels;             // by rank
  std::vector<Nanoseconds> measured_ends;  // by rank
};

struct RankSteps {
  IterationSource source = IterationSource::whole_trace;
  std::vector<TaskId> marks;          // tasks that take no time, at the boundaries of iterations
  std::vector<Nanoseconds> measured;  // when the marks were, in the same order
  bool to_the_end = false;            // the last iteration ends with the last task of all
  Nanoseconds measured_end{};         // of the rank's last event
  Nanoseconds clock_offset{};         // of the rank's clock against the first one's, taken out of all times
};

struct TraceGraph {
  TaskGraph tasks;
  std::vector<Nanoseconds> measured_start;  // by task; for reports and tests, never used in a simulation
  std::vector<RankSteps> ranks;
  std::vector<Rendezvous> collectives;
  DependencyCounts counts;
};

struct DependencyOptions {
  // Also what decided gets the trace's usual lag instead of its own measured one. Replayed like this a trace shows how
  // much of its time rests on such constants: with measured lags every start is explained to the nanosecond, so that a
  // replay can only fail by missing or contradicting dependencies.
  bool usual_lags = false;
};

// One trace per rank, of the same run. An Error where there is nothing to simulate.
Result<TraceGraph> dependency_graph(std::span<const Trace> ranks, const DependencyOptions& options);
inline Result<TraceGraph> dependency_graph(std::span<const Trace> ranks) { return dependency_graph(ranks, {}); }

// Length of the iterations of a rank, measured and in a simulation.
std::vector<Nanoseconds> measured_iterations(const RankSteps& rank);
std::vector<Nanoseconds> simulated_iterations(const TaskGraph& tasks, const RankSteps& rank,
                                              const Simulation& simulation);

}  // namespace forerun
