#include "api/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/statistics.h"
#include "ingest/kineto/kineto_reader.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

std::pair<int64_t, int64_t> span_of(const Trace& trace) {
  int64_t last = INT64_MIN;
  for (EventIndex i = 0; i < trace.size(); ++i) last = std::max(last, trace.events.end(i));
  return {trace.size() == 0 ? 0 : trace.events.start.front(), last};
}

// Whether `trace` is another rank of the run that `ranks` are of.
bool belongs(const Trace& trace, const std::vector<Trace>& ranks) {
  if (ranks.empty() || trace.world_size <= 1 || trace.rank < 0) return false;
  const auto [from, to] = span_of(trace);
  return std::all_of(ranks.begin(), ranks.end(), [&, begin = from, end = to](const Trace& other) {
    const auto [other_from, other_to] = span_of(other);
    return other.world_size == trace.world_size && other.rank >= 0 && other.rank != trace.rank && begin < other_to &&
           other_from < end && fs::path(other.file).parent_path() == fs::path(trace.file).parent_path();
  });
}

}  // namespace

Result<ReplayRow> replay(std::span<const Trace> ranks, const ReplayOptions& options) {
  auto graph = dependency_graph(ranks, {.usual_lags = !options.own_lags});
  if (!graph) return graph.error();
  const auto began = std::chrono::steady_clock::now();
  const Simulation simulation = simulate(graph->tasks);
  ReplayRow row;
  row.simulation_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (const Trace& trace : ranks) {
    row.files.push_back(trace.file);
    const double shift = microseconds(Nanoseconds(trace.device_shift));
    if (std::abs(shift) > std::abs(row.device_clock_us)) row.device_clock_us = shift;
  }
  row.file = ranks.size() == 1 ? ranks.front().file : fs::path(ranks.front().file).parent_path().string();
  row.tasks = graph->tasks.size();
  row.dependencies = graph->tasks.dependency_count();
  row.counts = graph->counts;
  row.source = graph->ranks.front().source;
  row.own_lags = options.own_lags;
  for (const RankSteps& rank : graph->ranks) {
    row.rank_clocks_us = std::max(row.rank_clocks_us, std::abs(microseconds(rank.clock_offset)));
    for (const Nanoseconds length : measured_iterations(rank)) row.measured_steps_ms.push_back(milliseconds(length));
    for (const Nanoseconds length : simulated_iterations(graph->tasks, rank, simulation)) {
      row.simulated_steps_ms.push_back(milliseconds(length));
    }
  }
  row.iterations = row.measured_steps_ms.size();
  row.measured_ms = mean(row.measured_steps_ms);
  row.simulated_ms = mean(row.simulated_steps_ms);
  for (const Rendezvous& collective : graph->collectives) {
    for (size_t r = 0; r < collective.kernels.size(); ++r) {
      const Nanoseconds off = simulation.end_of(graph->tasks, collective.kernels[r]) - collective.measured_ends[r];
      row.worst_collective_us = std::max(row.worst_collective_us, std::abs(microseconds(off)));
    }
  }
  return row;
}

Status replay_traces(const std::vector<TraceFile>& files, const ReplayOptions& options, const ReplayHandlers& handlers,
                     const WorkControl& control) {
  Work work(control);
  KinetoOptions reading;
  reading.work = &work;
  std::vector<Trace> ranks;
  size_t answered = 0, failed = 0;
  const auto answer = [&] {
    if (ranks.empty()) return;
    std::sort(ranks.begin(), ranks.end(), [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
    const auto row = replay(ranks, options);
    if (row) {
      ++answered;
      if (handlers.row) handlers.row(*row);
    } else {
      ++failed;
      if (handlers.problem) handlers.problem(row.error().within(ranks.front().file));
    }
    ranks.clear();
  };
  for (const TraceFile& file : files) {
    work.begin("bytes of " + file.path);
    auto trace = read_kineto(file.path, reading);
    if (Status status = work.check(); !status) return status;
    if (!trace) {
      ++failed;
      if (handlers.problem) handlers.problem(trace.error());
      continue;
    }
    if (handlers.read) handlers.read(*trace);
    if (options.separately || !belongs(*trace, ranks)) answer();
    ranks.push_back(std::move(*trace));
  }
  answer();
  if (Status status = work.check(); !status) return status;
  if (answered == 0 && failed > 0) return Error{"no trace could be replayed", "", ""};
  return {};
}

double ReplayRow::error() const { return measured_ms > 0 ? std::abs(simulated_ms - measured_ms) / measured_ms : 0; }

double ReplayRow::linked() const {
  return counts.device_work == 0 ? 1 : static_cast<double>(counts.linked) / static_cast<double>(counts.device_work);
}

}  // namespace forerun
