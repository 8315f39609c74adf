#include "timeline/trace_analysis.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/parallel.h"
#include "timeline/layers.h"

namespace forerun {
namespace {

// What an analysis of one rank leaves behind for the comparison of ranks.
struct RankData {
  std::vector<WorkKind> kinds;
  std::vector<EventIndex> work;
};

// What does not need one another, beside each other.
void together(const std::vector<std::function<void()>>& parts) {
  parallel_for(parts.size(), 0, [&](size_t i) { parts[i](); });
}

RankAnalysis analyze_rank(const Trace& trace, const AnalysisOptions& options, RankData& data) {
  const TraceLinks links = link_events(trace);
  const Iterations iterations = find_iterations(trace, links);
  EventLayers layers;
  together({[&] { layers = map_layers(trace, links, iterations); },
            [&] {
              data.kinds = work_kinds(trace, links);
              data.work = kept_work(trace, links, iterations, options.breakdown);
            }});
  RankAnalysis rank;
  rank.file = trace.file;
  rank.gpu = trace.gpu;
  rank.rank = trace.rank;
  rank.counts = trace.counts;
  rank.device_work = links.device_work;
  rank.linked = links.linked;
  rank.device_shift = Nanoseconds(trace.device_shift);
  rank.communication_kernels = std::count(data.kinds.begin(), data.kinds.end(), WorkKind::communication);
  rank.names_process_group = trace.names_process_group;
  rank.step_source = iterations.source;
  for (size_t i = 0; i < iterations.count(); ++i) {
    rank.steps.emplace_back(iterations.boundaries[i + 1] - iterations.boundaries[i]);
  }
  together({[&] { rank.usage = usage_of(trace, links, layers, data.kinds, data.work); },
            [&] { rank.devices = break_down(trace, links, data.kinds, data.work, options.breakdown); },
            [&] { rank.launches = launch_statistics(trace, links, data.work); },
            [&] { rank.queues = queue_lengths(trace, links, data.work); }});
  rank.has_modules = layers.modules;
  rank.has_annotations = layers.annotations;
  return rank;
}

std::vector<ChangeRow> changes(const std::vector<UsageRow>& before, const std::vector<UsageRow>& after,
                               Nanoseconds UsageRow::*time) {
  std::map<std::string, ChangeRow> rows;
  for (const UsageRow& row : before) {
    ChangeRow& change = rows[row.name];
    change.count_before = row.count;
    change.before = row.*time;
  }
  for (const UsageRow& row : after) {
    ChangeRow& change = rows[row.name];
    change.count_after = row.count;
    change.after = row.*time;
  }
  std::vector<ChangeRow> sorted;
  for (auto& [name, row] : rows) {
    row.name = name;
    sorted.push_back(std::move(row));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const ChangeRow& a, const ChangeRow& b) {
    return std::abs(a.change().value) > std::abs(b.change().value);
  });
  return sorted;
}

}  // namespace

Nanoseconds mean_of(const std::vector<Nanoseconds>& times) {
  double sum = 0;
  for (const Nanoseconds time : times) sum += static_cast<double>(time.value);
  return times.empty() ? Nanoseconds() : Nanoseconds(static_cast<int64_t>(sum / static_cast<double>(times.size())));
}

TraceAnalysis analyze(std::span<const Trace> ranks, const AnalysisOptions& options) {
  TraceAnalysis analysis;
  std::vector<RankData> data(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) analysis.ranks.push_back(analyze_rank(ranks[r], options, data[r]));
  std::vector<RankView> views;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankAnalysis& rank = analysis.ranks[r];
    views.push_back({&ranks[r], data[r].kinds, data[r].work, rank.devices.empty() ? nullptr : &rank.devices.front(),
                     mean_of(rank.steps)});
  }
  analysis.comparison = compare_ranks(views);
  if (!options.critical_path) return analysis;
  auto path = path_of(ranks, options.path);
  if (path) {
    analysis.path = std::move(*path);
  } else {
    analysis.no_path = path.error().message();
  }
  return analysis;
}

TraceChanges changes_between(const RankAnalysis& before, const RankAnalysis& after) {
  TraceChanges result;
  result.step_before = mean_of(before.steps);
  result.step_after = mean_of(after.steps);
  result.kernels = changes(before.usage.kernels, after.usage.kernels, &UsageRow::gpu);
  result.ops = changes(before.usage.ops, after.usage.ops, &UsageRow::host);
  return result;
}

}  // namespace forerun
