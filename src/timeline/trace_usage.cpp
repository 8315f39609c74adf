#include "timeline/trace_usage.h"

#include <algorithm>
#include <map>

namespace forerun {
namespace {

void sort_rows(std::vector<UsageRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const UsageRow& a, const UsageRow& b) {
    if (a.gpu != b.gpu) return a.gpu > b.gpu;
    return a.host != b.host ? a.host > b.host : a.name < b.name;
  });
}

template <class Key>
std::vector<UsageRow> rows_of(std::map<Key, UsageRow>& by_key) {
  std::vector<UsageRow> rows;
  for (auto& [key, row] : by_key) rows.push_back(std::move(row));
  sort_rows(rows);
  return rows;
}

std::vector<UsageRow> kernels_of(const Trace& trace, std::span<const WorkKind> kinds,
                                 std::span<const EventIndex> work) {
  std::map<NameId, UsageRow> rows;
  for (const EventIndex i : work) {
    UsageRow& row = rows[trace.events.name[i]];
    const Nanoseconds duration(trace.events.duration[i]);
    if (row.count == 0) {
      row.name = trace.name(i);
      row.kind = kinds[i];
      row.shortest = duration;
    }
    ++row.count;
    row.gpu += duration;
    row.shortest = std::min(row.shortest, duration);
    row.longest = std::max(row.longest, duration);
  }
  return rows_of(rows);
}

std::vector<UsageRow> ops_of(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work) {
  const TraceEvents& events = trace.events;
  std::map<NameId, UsageRow> rows;
  std::vector<EventIndex> around(trace.size(), kNoIndex);  // the op around a host event
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (!is_host(events.kind[i])) continue;
    const EventIndex parent = links.parent[i];
    if (parent != kNoIndex) around[i] = events.kind[parent] == EventKind::op ? parent : around[parent];
    if (events.kind[i] != EventKind::op) continue;
    UsageRow& row = rows[events.name[i]];
    if (row.count == 0) row.name = trace.name(i);
    ++row.count;
    const Nanoseconds duration(events.duration[i]);
    row.host += duration;
    if (around[i] != kNoIndex) rows[events.name[around[i]]].host -= duration;
  }
  for (const EventIndex i : work) {
    if (links.op[i] != kNoIndex) rows[events.name[links.op[i]]].gpu += Nanoseconds(events.duration[i]);
  }
  return rows_of(rows);
}

std::string layer_name(const Trace& trace, const EventLayers& layers, NameId layer) {
  if (!layer.valid()) return "(none)";
  const size_t own = layer.value;
  return own < trace.names.size() ? trace.names[layer] : layers.names[own - trace.names.size()];
}

// Host time of what is outermost: nothing of the same module or phase around it.
template <class Key, class KeyOf, class NameOf>
std::vector<UsageRow> by(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work, KeyOf key_of,
                         NameOf text_of) {
  std::map<Key, UsageRow> rows;
  for (const EventIndex i : work) {
    UsageRow& row = rows[key_of(i)];
    ++row.count;
    row.gpu += Nanoseconds(trace.events.duration[i]);
  }
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (trace.events.kind[i] != EventKind::op) continue;
    const Nanoseconds duration(trace.events.duration[i]);
    rows[key_of(i)].host += duration;
    EventIndex around = links.parent[i];
    while (around != kNoIndex && trace.events.kind[around] != EventKind::op) around = links.parent[around];
    if (around != kNoIndex) rows[key_of(around)].host -= duration;
  }
  for (auto& [key, row] : rows) row.name = text_of(key);
  return rows_of(rows);
}

}  // namespace

Usage usage_of(const Trace& trace, const TraceLinks& links, const EventLayers& layers, std::span<const WorkKind> kinds,
               std::span<const EventIndex> work) {
  Usage usage;
  usage.kernels = kernels_of(trace, kinds, work);
  usage.ops = ops_of(trace, links, work);
  usage.modules = by<NameId>(
      trace, links, work, [&](EventIndex i) { return layers.layer[i]; },
      [&](NameId layer) { return layer_name(trace, layers, layer); });
  usage.phases = by<StepPhase>(
      trace, links, work, [&](EventIndex i) { return layers.phase[i]; },
      [&](StepPhase phase) { return std::string(name_of(phase)); });
  return usage;
}

}  // namespace forerun
