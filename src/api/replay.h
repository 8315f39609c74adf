// Does a trace, simulated from durations and dependencies alone, take as long as it did?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/trace.h"
#include "base/work_control.h"
#include "ingest/trace/trace.h"
#include "timeline/dependency_graph.h"

namespace forerun {

// How near a simulated trace comes to the measured one.
struct ReplayRow {
  std::string file;                // or the folder, where several ranks were replayed together
  std::vector<std::string> files;  // one per rank
  IterationSource source = IterationSource::whole_trace;
  size_t iterations = 0;                                      // of all ranks
  double measured_ms = 0, simulated_ms = 0;                   // mean over iterations
  std::vector<double> measured_steps_ms, simulated_steps_ms;  // every iteration, rank after rank
  size_t tasks = 0, dependencies = 0;
  DependencyCounts counts;
  bool own_lags = false;           // replayed with each event's own lags
  double device_clock_us = 0;      // what was added to a device's time stamps, the most of all ranks (ingest/trace)
  double rank_clocks_us = 0;       // by which ranks' clocks were apart, the most, and which was taken out
  double worst_collective_us = 0;  // of all collectives found on all ranks: simulated against measured end
  double simulation_seconds = 0;   // the simulator alone; left out of JSON, which is the same on every run

  [[nodiscard]] double error() const;   // |simulated - measured| / measured
  [[nodiscard]] double linked() const;  // share of device work with a launch
};

struct ReplayHandlers {
  std::function<void(const ReplayRow&)> row;
  std::function<void(const Trace&)> read;     // after each file: what became of its events
  std::function<void(const Error&)> problem;  // of one file; the others go on
};

struct ReplayOptions {
  bool separately = false;  // ranks of one run are not replayed together
  // Every launch, kernel and sync with its own measured lag, in place of the trace's usual ones. Then each start is
  // explained to the nanosecond, and an error of 0 says no more than that no dependency contradicts another.
  bool own_lags = false;
};

// Files of one folder that name different ranks of one world and overlap in time are replayed together.
Status replay_traces(const std::vector<TraceFile>& files, const ReplayOptions& options, const ReplayHandlers& handlers,
                     const WorkControl& control = {});

// The same of traces in memory: one per rank.
Result<ReplayRow> replay(std::span<const Trace> ranks, const ReplayOptions& options);

}  // namespace forerun
