#include "timeline/trace_usage.h"

#include <algorithm>

#include "base/parallel.h"

namespace forerun {
namespace {

void sort_rows(std::vector<UsageRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const UsageRow& a, const UsageRow& b) {
    if (a.gpu != b.gpu) return a.gpu > b.gpu;
    return a.host != b.host ? a.host > b.host : a.name < b.name;
  });
}

// Rows by a small number: that of a name, or of a phase. A trace has millions of events and few of these.
class RowsByNumber {
 public:
  explicit RowsByNumber(size_t numbers) : place_(numbers, kNoIndex) {}

  UsageRow& operator[](size_t number) {
    uint32_t& place = place_[number];
    if (place == kNoIndex) {
      place = static_cast<uint32_t>(rows_.size());
      rows_.emplace_back();
    }
    return rows_[place];
  }

  // Those that were asked for, named and in the order of a report.
  template <class NameOf>
  std::vector<UsageRow> sorted(const NameOf& name_of) && {
    std::vector<UsageRow> rows;
    for (size_t number = 0; number < place_.size(); ++number) {
      if (place_[number] == kNoIndex) continue;
      rows.push_back(std::move(rows_[place_[number]]));
      rows.back().name = name_of(number);
    }
    sort_rows(rows);
    return rows;
  }

 private:
  std::vector<uint32_t> place_;
  std::vector<UsageRow> rows_;
};

std::vector<UsageRow> kernels_of(const Trace& trace, std::span<const WorkKind> kinds,
                                 std::span<const EventIndex> work) {
  RowsByNumber rows(trace.names.size());
  for (const EventIndex i : work) {
    UsageRow& row = rows[trace.events.name[i].value];
    const Nanoseconds duration(trace.events.duration[i]);
    if (row.count == 0) {
      row.kind = kinds[i];
      row.shortest = duration;
    }
    ++row.count;
    row.gpu += duration;
    row.shortest = std::min(row.shortest, duration);
    row.longest = std::max(row.longest, duration);
  }
  return std::move(rows).sorted([&](size_t name) { return trace.names[NameId(name)]; });
}

std::vector<UsageRow> ops_of(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work) {
  const TraceEvents& events = trace.events;
  RowsByNumber rows(trace.names.size());
  std::vector<EventIndex> around(trace.size(), kNoIndex);  // the op around a host event
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (!is_host(events.kind[i])) continue;
    const EventIndex parent = links.parent[i];
    if (parent != kNoIndex) around[i] = events.kind[parent] == EventKind::op ? parent : around[parent];
    if (events.kind[i] != EventKind::op) continue;
    UsageRow& row = rows[events.name[i].value];
    ++row.count;
    const Nanoseconds duration(events.duration[i]);
    row.host += duration;
    if (around[i] != kNoIndex) rows[events.name[around[i]].value].host -= duration;
  }
  for (const EventIndex i : work) {
    if (links.op[i] != kNoIndex) rows[events.name[links.op[i]].value].gpu += Nanoseconds(events.duration[i]);
  }
  return std::move(rows).sorted([&](size_t name) { return trace.names[NameId(name)]; });
}

std::string layer_name(const Trace& trace, const EventLayers& layers, NameId layer) {
  if (!layer.valid()) return "(none)";
  const size_t own = layer.value;
  return own < trace.names.size() ? trace.names[layer] : layers.names[own - trace.names.size()];
}

// Host time of what is outermost: nothing of the same module or phase around it.
template <class KeyOf, class NameOf>
std::vector<UsageRow> by(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work, size_t keys,
                         const KeyOf& key_of, const NameOf& text_of) {
  RowsByNumber rows(keys);
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
  return std::move(rows).sorted(text_of);
}

}  // namespace

Usage usage_of(const Trace& trace, const TraceLinks& links, const EventLayers& layers, std::span<const WorkKind> kinds,
               std::span<const EventIndex> work) {
  const size_t names = trace.names.size() + layers.names.size();  // of layers; behind them "(none)"
  constexpr size_t kPhases = static_cast<size_t>(StepPhase::update) + 1;
  Usage usage;
  constexpr size_t kLists = 4;
  parallel_for(kLists, 0, [&](size_t list) {
    switch (list) {
      case 0: usage.kernels = kernels_of(trace, kinds, work); break;
      case 1: usage.ops = ops_of(trace, links, work); break;
      case 2:
        usage.modules = by(
            trace, links, work, names + 1,
            [&](EventIndex i) { return layers.layer[i].valid() ? layers.layer[i].value : names; },
            [&](size_t layer) { return layer_name(trace, layers, layer == names ? NameId() : NameId(layer)); });
        break;
      default:
        usage.phases = by(
            trace, links, work, kPhases, [&](EventIndex i) { return static_cast<size_t>(layers.phase[i]); },
            [](size_t phase) { return std::string(name_of(static_cast<StepPhase>(phase))); });
    }
  });
  return usage;
}

}  // namespace forerun
