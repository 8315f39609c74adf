#include "timeline/dependency_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/statistics.h"
#include "timeline/dependency_rank.h"

namespace forerun {
namespace {

// A collective as it can be told apart on every rank: the kernel's name, its stream, and how many of those came before.
using CollectiveKey = std::tuple<std::string, int64_t, size_t>;

using KeyedCollectives = std::map<CollectiveKey, EventIndex>;

constexpr int64_t kClockSlack = 200'000;  // nanoseconds that ranks may be apart at a collective and on one clock

KeyedCollectives keyed_collectives(const Trace& trace) {
  std::map<std::pair<std::string, int64_t>, std::vector<EventIndex>> alike;
  for (const EventIndex work : communications_of(trace)) {
    alike[{trace.name(work), trace.lane_of(work).thread}].push_back(work);
  }
  KeyedCollectives keyed;
  for (const auto& [key, list] : alike) {
    for (size_t i = 0; i < list.size(); ++i) {
      // Counted from the end: profilers start at different moments and stop after a common one.
      keyed[{key.first, key.second, list.size() - 1 - i}] = list[i];
    }
  }
  return keyed;
}

// By how much the clock of each rank is ahead of the first one's: a collective ends everywhere at once.
std::vector<int64_t> clock_offsets(std::span<const Trace> traces, const std::vector<KeyedCollectives>& keyed) {
  std::vector<int64_t> offsets(traces.size(), 0);
  for (size_t r = 1; r < traces.size(); ++r) {
    std::vector<int64_t> apart;
    for (const auto& [key, first] : keyed.front()) {
      const auto same = keyed[r].find(key);
      if (same != keyed[r].end()) apart.push_back(traces[r].events.end(same->second) - traces[0].events.end(first));
    }
    if (apart.empty()) continue;
    const int64_t offset = upper_median(std::move(apart));
    if (std::abs(offset) > kClockSlack) offsets[r] = offset;
  }
  return offsets;
}

// All ranks arrive, then the collective runs; each rank's part lasts from the last arrival to its measured end.
void meet(const std::vector<EventIndex>& kernels, const std::vector<RankDependencies>& ranks, GraphAssembly& out,
          std::vector<Rendezvous>& found) {
  int64_t last_arrival = INT64_MIN, first_end = INT64_MAX;
  for (size_t r = 0; r < ranks.size(); ++r) {
    last_arrival = std::max(last_arrival, ranks[r].start(kernels[r]));
    first_end = std::min(first_end, ranks[r].end(kernels[r]));
  }
  if (last_arrival > first_end + kClockSlack) return;  // not one collective after all
  Rendezvous collective;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const TaskId kernel = ranks[r].task(kernels[r]);
    for (size_t other = 0; other < ranks.size(); ++other) {
      out.builder.depend(kernel, {ranks[other].arrival(kernels[other]), Anchor::end, Nanoseconds(0)});
    }
    out.builder.set_duration(kernel, Nanoseconds(std::max<int64_t>(0, ranks[r].end(kernels[r]) - last_arrival)));
    out.start[kernel.value] = last_arrival;
    collective.kernels.push_back(kernel);
    collective.measured_ends.emplace_back(ranks[r].end(kernels[r]));
  }
  found.push_back(std::move(collective));
}

std::vector<Rendezvous> meet_all(const std::vector<KeyedCollectives>& keyed, const std::vector<RankDependencies>& ranks,
                                 GraphAssembly& out) {
  std::vector<Rendezvous> found;
  for (const auto& [key, event] : keyed.front()) {
    std::vector<EventIndex> kernels;
    for (const auto& of_rank : keyed) {
      const auto same = of_rank.find(key);
      if (same != of_rank.end()) kernels.push_back(same->second);
    }
    if (kernels.size() == ranks.size()) meet(kernels, ranks, out, found);
  }
  return found;
}

// Refuses a trace of which every stream would have to be looked at for every wait.
Status few_streams(std::span<const Trace> traces) {
  constexpr auto kMostStreams = 4096;
  for (const Trace& trace : traces) {
    const auto streams = std::count_if(trace.lanes.begin(), trace.lanes.end(),
                                       [](const TraceLane& lane) { return lane.kind == TraceLane::Kind::gpu_stream; });
    if (streams <= kMostStreams) continue;
    return Error{fmt::format("the trace has {} GPU streams; up to {} are simulated", streams, kMostStreams), "",
                 "real runs have some tens: look whether \"stream\" holds something else"};
  }
  return {};
}

// Whether times from the origin, and sums of a few of them, fit an int64.
bool fits(std::span<const Trace> traces, int64_t origin) {
  constexpr uint64_t kLongest = uint64_t{1} << 58;  // nanoseconds: nine years
  for (const Trace& trace : traces) {
    for (EventIndex i = 0; i < trace.size(); ++i) {
      const EventKind kind = trace.events.kind[i];
      if (!is_host(kind) && !is_device_work(kind)) continue;
      if (static_cast<uint64_t>(trace.events.end(i)) - static_cast<uint64_t>(origin) > kLongest) return false;
    }
  }
  return true;
}

// Where everything counts from, on the clock of the first rank.
int64_t first_start(std::span<const Trace> traces, const std::vector<int64_t>& offsets) {
  int64_t first = INT64_MAX;
  for (size_t r = 0; r < traces.size(); ++r) {
    const Trace& trace = traces[r];
    for (EventIndex i = 0; i < trace.size(); ++i) {
      const EventKind kind = trace.events.kind[i];
      if (is_host(kind) || is_device_work(kind)) {
        first = std::min(first, trace.events.start[i] - offsets[r]);
        break;  // rows stand in order of start
      }
    }
  }
  return first;
}

void renumber(TraceGraph& graph, const GraphAssembly& out, const std::vector<TaskId>& now) {
  graph.measured_start.resize(now.size());
  for (size_t i = 0; i < now.size(); ++i) graph.measured_start[now[i].value] = Nanoseconds(out.start[i]);
  for (RankSteps& rank : graph.ranks) {
    for (TaskId& mark : rank.marks) mark = now[mark.value];
  }
  for (Rendezvous& collective : graph.collectives) {
    for (TaskId& kernel : collective.kernels) kernel = now[kernel.value];
  }
}

}  // namespace

DependencyCounts& DependencyCounts::operator+=(const DependencyCounts& other) {
  device_work += other.device_work;
  linked += other.linked;
  syncs_found += other.syncs_found;
  syncs_inferred += other.syncs_inferred;
  queue_waits += other.queue_waits;
  hand_overs += other.hand_overs;
  communications += other.communications;
  rendezvous += other.rendezvous;
  return *this;
}

Result<TraceGraph> dependency_graph(std::span<const Trace> ranks, const DependencyOptions& options) {
  int64_t origin = first_start(ranks, std::vector<int64_t>(ranks.size(), 0));
  if (origin == INT64_MAX) return Error{"no event to simulate", "", "record host and GPU activities"};
  if (Status status = few_streams(ranks); !status) return status.error();
  if (!fits(ranks, origin)) return Error{"events lie years apart", "", "check the time stamps of the file"};
  std::vector<KeyedCollectives> keyed;
  for (size_t r = 0; r < ranks.size() && ranks.size() > 1; ++r) keyed.push_back(keyed_collectives(ranks[r]));
  const std::vector<int64_t> offsets = clock_offsets(ranks, keyed);
  origin = first_start(ranks, offsets);
  GraphAssembly out;
  out.names = std::make_shared<StringTable>();
  out.builder = TaskGraphBuilder(out.names);
  Task beginning;
  beginning.kind = TaskKind::mark;
  beginning.name = out.names->intern("beginning");
  beginning.op_instance = beginning.event = kNoLink;
  beginning.lane = out.builder.add_lane({LaneKind::host_thread, -1, -1, true, "beginning"});
  out.beginning = out.add(beginning, 0);
  size_t events = 0;
  for (const Trace& trace : ranks) events += trace.size();
  out.builder.reserve(events + 16, events);

  TraceGraph graph;
  std::vector<RankDependencies> built;
  built.reserve(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto number = static_cast<int32_t>(ranks[r].rank >= 0 ? ranks[r].rank : static_cast<int64_t>(r));
    built.emplace_back(ranks[r], number, origin + offsets[r], ranks.size() > 1, options, out).build();
    graph.counts += built.back().counts();
    graph.counts.communications += static_cast<int64_t>(built.back().communications().size());
    graph.ranks.push_back(built.back().steps());
    graph.ranks.back().clock_offset = Nanoseconds(offsets[r]);
  }
  if (ranks.size() > 1) graph.collectives = meet_all(keyed, built, out);
  graph.counts.rendezvous = static_cast<int64_t>(graph.collectives.size());
  built.clear();
  std::vector<TaskId> renumbered;
  auto tasks = std::move(out.builder).build(&renumbered);
  if (!tasks) return tasks.error();
  graph.tasks = std::move(*tasks);
  renumber(graph, out, renumbered);
  return graph;
}

std::vector<Nanoseconds> measured_iterations(const RankSteps& rank) {
  std::vector<Nanoseconds> lengths;
  for (size_t i = 1; i < rank.measured.size(); ++i) lengths.push_back(rank.measured[i] - rank.measured[i - 1]);
  if (rank.to_the_end && !rank.measured.empty()) lengths.push_back(rank.measured_end - rank.measured.back());
  return lengths;
}

std::vector<Nanoseconds> simulated_iterations(const TaskGraph& tasks, const RankSteps& rank,
                                              const Simulation& simulation) {
  std::vector<Nanoseconds> lengths;
  for (size_t i = 1; i < rank.marks.size(); ++i) {
    lengths.push_back(simulation.start_of(rank.marks[i]) - simulation.start_of(rank.marks[i - 1]));
  }
  if (!rank.to_the_end || rank.marks.empty()) return lengths;
  const int32_t number = tasks.lane_of(rank.marks.back()).rank;
  Nanoseconds until{};
  for (uint32_t t = 0; t < tasks.size(); ++t) {
    if (tasks.lane_of(TaskId(t)).rank == number) until = std::max(until, simulation.end_of(tasks, TaskId(t)));
  }
  lengths.push_back(until - simulation.start_of(rank.marks.back()));
  return lengths;
}

}  // namespace forerun
