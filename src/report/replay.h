// ReplayRow: how near a simulated trace comes to the measured one; as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "timeline/dependency_graph.h"

namespace forerun {

struct ReplayRow {
  std::string file;                // or the folder, where several ranks were replayed together
  std::vector<std::string> files;  // one per rank
  IterationSource source = IterationSource::whole_trace;
  size_t iterations = 0;                                      // of all ranks
  double measured_ms = 0, simulated_ms = 0;                   // mean over iterations
  std::vector<double> measured_steps_ms, simulated_steps_ms;  // every iteration, rank after rank
  size_t tasks = 0, dependencies = 0;
  DependencyCounts counts;
  double worst_collective_us = 0;  // of all collectives found on all ranks: simulated against measured end
  double simulation_seconds = 0;   // the simulator alone; left out of JSON, which is the same on every run

  [[nodiscard]] double error() const;   // |simulated - measured| / measured
  [[nodiscard]] double linked() const;  // share of device work with a launch
};

std::string replay_header();
std::string to_text(const ReplayRow& row);                // one line
std::string to_json(const ReplayRow& row);                // one line
std::string to_text(const std::vector<ReplayRow>& rows);  // the totals

}  // namespace forerun
