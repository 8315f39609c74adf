// Everything `forerun trace` tells of the ranks of a run, in one structure, and of two traces side by side.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ingest/trace/trace.h"
#include "timeline/iterations.h"
#include "timeline/trace_breakdown.h"
#include "timeline/trace_launches.h"
#include "timeline/trace_path.h"
#include "timeline/trace_ranks.h"
#include "timeline/trace_usage.h"

namespace forerun {

struct AnalysisOptions {
  BreakdownOptions breakdown;
  PathOptions path;
  bool critical_path = true;
};

struct RankAnalysis {
  std::string file, gpu;
  int64_t rank = -1;
  TraceCounts counts;
  int64_t device_work = 0, linked = 0;
  Nanoseconds device_shift;  // that was added to the device's times, whose clock was off
  int64_t communication_kernels = 0;
  bool names_process_group = false;
  IterationSource step_source = IterationSource::whole_trace;
  std::vector<Nanoseconds> steps;
  std::vector<DeviceBreakdown> devices;
  Usage usage;
  bool has_modules = false;
  bool has_annotations = false;  // that stand for modules
  LaunchStatistics launches;
  std::vector<QueueLength> queues;
};

struct TraceAnalysis {
  std::vector<RankAnalysis> ranks;
  RankComparison comparison;
  std::optional<TracePath> path;
  std::string no_path;  // why there is none
};

TraceAnalysis analyze(std::span<const Trace> ranks, const AnalysisOptions& options);

// What changed from one trace to another: kernels and ops by name.
struct ChangeRow {
  std::string name;
  int64_t count_before = 0, count_after = 0;
  Nanoseconds before, after;
  [[nodiscard]] Nanoseconds change() const { return after - before; }
};
struct TraceChanges {
  Nanoseconds step_before, step_after;  // mean iteration
  std::vector<ChangeRow> kernels;       // GPU time; the largest change first
  std::vector<ChangeRow> ops;           // host time
};
TraceChanges changes_between(const RankAnalysis& before, const RankAnalysis& after);
Nanoseconds mean_of(const std::vector<Nanoseconds>& times);

}  // namespace forerun
