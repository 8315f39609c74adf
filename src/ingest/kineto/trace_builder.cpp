#include "ingest/kineto/trace_builder.h"

#include <algorithm>

#include "ingest/kineto/event_text.h"
#include "ingest/kineto/numbers.h"
#include "ingest/trace/device_clock.h"

namespace forerun {
namespace {

struct Category {
  std::string_view name;
  EventKind kind;
};

constexpr Category kCategories[] = {
    {"cpu_op", EventKind::op},
    {"kernel", EventKind::kernel},
    {"cuda_runtime", EventKind::runtime},
    {"python_function", EventKind::python},
    {"user_annotation", EventKind::annotation},
    {"gpu_memcpy", EventKind::copy},
    {"gpu_memset", EventKind::fill},
    {"cuda_driver", EventKind::driver},
    {"cuda_sync", EventKind::sync},
    {"gpu_user_annotation", EventKind::gpu_annotation},
    {"overhead", EventKind::overhead},
    {"Operator", EventKind::op},
    {"Runtime", EventKind::runtime},
    {"Kernel", EventKind::kernel},
    {"Memcpy", EventKind::copy},
    {"Memset", EventKind::fill},
    {"operator", EventKind::op},
    {"runtime", EventKind::runtime},
    {"memcpy", EventKind::copy},
    {"memset", EventKind::fill},
    {"concurrent_kernel", EventKind::kernel},
    {"hip_runtime", EventKind::runtime},
    {"hip_driver", EventKind::driver},
    {"hip_sync", EventKind::sync},
    {"xpu_runtime", EventKind::runtime},
    {"xpu_driver", EventKind::driver},
    {"privateuse1_runtime", EventKind::runtime},
    {"privateuse1_driver", EventKind::driver},
    {"mtia_runtime", EventKind::runtime},
    {"gpu_op", EventKind::kernel},
};

// Marks that older profilers file among the ops.
bool is_mark(std::string_view name) {
  for (const std::string_view start :
       {"ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#", "nccl:", "gloo:", "DistributedDataParallel.", "##"}) {
    if (name.substr(0, start.size()) == start) return true;
  }
  return false;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ hash >> 29;
}

// Finds `value` in the side table, or adds it. Entries that share a hash take the next one.
template <class T>
uint32_t found_or_added(std::vector<T>& table, std::unordered_map<uint64_t, uint32_t>& index, uint64_t hash,
                        const T& value) {
  while (true) {
    const auto [found, added] = index.try_emplace(hash, static_cast<uint32_t>(table.size()));
    if (added) table.push_back(value);
    if (table[found->second] == value) return found->second;
    hash = mix(hash, 1);
  }
}

TraceLane::Kind lane_kind(EventKind kind) {
  if (is_host(kind)) return TraceLane::Kind::host_thread;
  if (is_device_work(kind)) return TraceLane::Kind::gpu_stream;
  if (kind == EventKind::sync) return TraceLane::Kind::gpu_sync;
  return kind == EventKind::gpu_annotation ? TraceLane::Kind::gpu_annotation : TraceLane::Kind::other;
}

int64_t number_of(NameId text) { return -1000 - static_cast<int64_t>(text.value); }

uint32_t small(int64_t value) { return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX)); }

}  // namespace

size_t TraceBuilder::HashLane::operator()(const LaneKey& key) const {
  return mix(mix(static_cast<uint64_t>(std::get<0>(key)), static_cast<uint64_t>(std::get<1>(key).first)),
             static_cast<uint64_t>(std::get<2>(key).first));
}

NameId TraceBuilder::intern(std::string_view raw) {
  if (raw.find('\\') == std::string_view::npos) return trace_.names.intern(raw);
  bool broken = false;
  const std::string text = unescaped(raw, broken);
  if (broken) {
    repaired_ = true;
    reason_ = "a string has a backslash that escapes nothing";
  }
  return trace_.names.intern(text);
}

// Texts in place of process and thread numbers ("Spans") become numbers below those that systems give.
TraceBuilder::NumberedId TraceBuilder::numbered(const RawId& id) {
  if (id.text.empty()) return {id.number, NameId()};
  const NameId text = intern(id.text);
  return {number_of(text), text};
}

EventKind TraceBuilder::kind_of(const RawEvent& event) {
  for (const Category& category : kCategories) {
    if (!event.category.empty() && category.name.front() != event.category.front()) continue;
    if (category.name != event.category) continue;
    return category.kind == EventKind::op && is_mark(event.name) ? EventKind::annotation : category.kind;
  }
  if (event.category.empty() && event.correlation > 0 && event.stream && event.device) return EventKind::kernel;
  return EventKind::other;
}

LaneIndex TraceBuilder::lane_of(EventKind kind, const RawEvent& event) {
  const TraceLane::Kind lane = lane_kind(kind);
  const bool device = lane == TraceLane::Kind::gpu_stream || lane == TraceLane::Kind::gpu_sync;
  const NumberedId process = device && event.device ? NumberedId{*event.device, NameId()} : numbered(event.process);
  const NumberedId thread = device && event.stream ? NumberedId{*event.stream, NameId()} : numbered(event.thread);
  return lane_of(lane, process, thread);
}

LaneIndex TraceBuilder::lane_of(TraceLane::Kind kind, const NumberedId& process, const NumberedId& thread) {
  const LaneKey key(kind, process.key(), thread.key());
  if (last_lane_ != kNoIndex && key == last_key_) return last_lane_;
  const auto [found, added] = lanes_.try_emplace(key, static_cast<LaneIndex>(trace_.lanes.size()));
  if (added) {
    trace_.lanes.push_back({kind, process.number, thread.number, NameId()});
    lane_ids_.emplace_back(process, thread);
  }
  last_key_ = key;
  last_lane_ = found->second;
  return found->second;
}

uint32_t TraceBuilder::entry_of(const OpDetail& detail) {
  uint64_t hash = 0;
  for (const NameId id : {detail.dims, detail.types, detail.strides, detail.values, detail.module, detail.stack}) {
    hash = mix(hash, id.value);
  }
  return found_or_added(trace_.ops, ops_, hash, detail);
}

uint32_t TraceBuilder::entry_of(const KernelDetail& detail) {
  uint64_t hash = mix(detail.registers, detail.shared_memory);
  for (size_t i = 0; i < 3; ++i) hash = mix(mix(hash, detail.grid[i]), detail.block[i]);
  return found_or_added(trace_.kernels, kernels_, hash, detail);
}

uint32_t TraceBuilder::op_detail(EventKind kind, const RawEvent& event) {
  OpDetail detail;
  detail.dims = intern_or_none(event.dims);
  detail.types = intern_or_none(event.types);
  detail.strides = intern_or_none(event.strides);
  detail.values = intern_or_none(event.values);
  detail.stack = intern_or_none(event.stack);
  detail.module = intern_or_none(event.module);
  constexpr std::string_view kModule = "nn.Module: ";
  if (kind == EventKind::python && event.name.substr(0, kModule.size()) == kModule) {
    detail.module = intern_or_none(event.name.substr(kModule.size()));
  }
  return detail == OpDetail() ? kNoIndex : entry_of(detail);
}

uint32_t TraceBuilder::detail_of(EventKind kind, const RawEvent& event) {
  switch (kind) {
    case EventKind::op:
    case EventKind::annotation:
    case EventKind::python: return op_detail(kind, event);
    case EventKind::kernel:
      if (!event.has_grid) return kNoIndex;
      return entry_of(KernelDetail{event.grid, event.block, small(event.registers), small(event.shared_memory)});
    case EventKind::sync:
      trace_.syncs.push_back({intern_or_none(event.sync_kind.empty() ? event.name : event.sync_kind),
                              event.stream.value_or(-1), event.wait_on_stream, event.record_correlation,
                              event.wait_event});
      return static_cast<uint32_t>(trace_.syncs.size() - 1);
    default: return kNoIndex;
  }
}

uint32_t TraceBuilder::collective_of(const RawEvent& event) {
  if (!event.has_collective) return kNoIndex;
  TraceCollective collective;
  collective.name = intern_or_none(event.collective_name);
  collective.dtype = intern_or_none(event.dtype);
  collective.group = intern_or_none(event.group);
  collective.description = intern_or_none(event.group_description);
  collective.ranks = intern_or_none(event.ranks);
  collective.in_splits = intern_or_none(event.in_splits);
  collective.out_splits = intern_or_none(event.out_splits);
  collective.in_elements = event.in_elements;
  collective.out_elements = event.out_elements;
  collective.group_size = event.group_size;
  collective.rank_start = event.rank_start;
  collective.rank_stride = event.rank_stride;
  trace_.collectives.push_back(collective);
  return static_cast<uint32_t>(trace_.collectives.size() - 1);
}

void TraceBuilder::take_metadata(const RawEvent& event) {
  if (event.name != "thread_name" || event.label.empty()) return;
  const NumberedId process = numbered(event.process), thread = numbered(event.thread);
  name_thread({process, thread, intern(event.label)});
}

void TraceBuilder::name_thread(const ThreadName& thread) {
  thread_names_[{thread.process.key(), thread.thread.key()}] = thread;
}

void TraceBuilder::push(EventKind kind, const RawEvent& event) {
  const int64_t thread = kind == EventKind::python ? event.python_id : event.forward_thread;
  trace_.events.add({.start = *event.start,
                     .duration = event.duration ? std::max<int64_t>(*event.duration, 0) : 0,
                     .name = intern(event.name),
                     .kind = kind,
                     .lane = lane_of(kind, event),
                     .correlation = event.correlation,
                     .external_id = event.external_id,
                     .sequence = event.sequence,
                     .bytes = kind == EventKind::copy || kind == EventKind::fill ? event.bytes : -1,
                     .forward_thread = static_cast<int32_t>(std::clamp<int64_t>(thread, -1, INT32_MAX)),
                     .detail = detail_of(kind, event),
                     .collective = collective_of(event)});
}

TraceBuilder::Taken TraceBuilder::add(const RawEvent& event) {
  repaired_ = false;
  if (event.phase == 'M') {
    take_metadata(event);
    return Taken::as_it_is;
  }
  if (event.phase != 'X') {
    if (event.phase != 0) return Taken::as_it_is;
    reason_ = "it has no phase (\"ph\")";
    return Taken::skipped;
  }
  if (!event.start) {
    reason_ = "it has no time (\"ts\") that is a number within range";
    return Taken::skipped;
  }
  if (trace_.size() >= kNoIndex - 1) {
    reason_ = "the trace has more events than can be numbered";
    return Taken::skipped;
  }
  if (!event.duration || *event.duration < 0) {
    repaired_ = true;
    reason_ = "its duration is missing or negative: taken as 0";
  }
  push(kind_of(event), event);
  return repaired_ ? Taken::repaired : Taken::as_it_is;
}

// Tables are taken over in the order of first sight, so that they end up as if all events had come here.
bool TraceBuilder::append(const TraceBuilder& block) {
  const Trace& rows = block.trace_;
  if (trace_.size() + rows.size() >= kNoIndex - 1) return false;
  std::vector<NameId> names;
  names.reserve(rows.names.size());
  for (size_t i = 0; i < rows.names.size(); ++i) names.push_back(trace_.names.intern(rows.names[NameId(i)]));
  const auto name = [&](NameId id) { return id.valid() ? names[id.value] : NameId(); };
  const auto here = [&](const NumberedId& id) {
    return id.text.valid() ? NumberedId{number_of(name(id.text)), name(id.text)} : id;
  };
  std::vector<LaneIndex> lanes;
  for (size_t i = 0; i < rows.lanes.size(); ++i) {
    const auto& [process, thread] = block.lane_ids_[i];
    lanes.push_back(lane_of(rows.lanes[i].kind, here(process), here(thread)));
  }
  for (const auto& [ids, thread] : block.thread_names_) {
    name_thread({here(thread.process), here(thread.thread), name(thread.name)});
  }
  std::vector<uint32_t> ops, kernels;
  for (const OpDetail& op : rows.ops) {
    ops.push_back(entry_of(
        OpDetail{name(op.dims), name(op.types), name(op.strides), name(op.values), name(op.module), name(op.stack)}));
  }
  for (const KernelDetail& kernel : rows.kernels) kernels.push_back(entry_of(kernel));
  const auto syncs = static_cast<uint32_t>(trace_.syncs.size());
  for (TraceSync sync : rows.syncs) {
    sync.kind = name(sync.kind);
    trace_.syncs.push_back(sync);
  }
  const auto collectives = static_cast<uint32_t>(trace_.collectives.size());
  for (TraceCollective collective : rows.collectives) {
    for (NameId* id : {&collective.name, &collective.dtype, &collective.group, &collective.description,
                       &collective.ranks, &collective.in_splits, &collective.out_splits}) {
      *id = name(*id);
    }
    trace_.collectives.push_back(collective);
  }
  const auto detail = [&](EventIndex i) {
    const uint32_t own = rows.events.detail[i];
    if (own == kNoIndex) return kNoIndex;
    switch (rows.events.kind[i]) {
      case EventKind::kernel: return kernels[own];
      case EventKind::sync: return syncs + own;
      default: return ops[own];
    }
  };
  TraceEvents& events = trace_.events;
  for (EventIndex i = 0; i < rows.size(); ++i) events.detail.push_back(detail(i));
  events.name.append(rows.events.name, name);
  events.lane.append(rows.events.lane, [&](LaneIndex lane) { return lanes[lane]; });
  events.collective.append(rows.events.collective,
                           [&](uint32_t own) { return own == kNoIndex ? kNoIndex : collectives + own; });
  events.append_numbers(rows.events);
  return true;
}

Trace TraceBuilder::finish(int64_t base) {
  if (base > 0 && base <= kLongestTime) {
    for (int64_t& start : trace_.events.start) start += base;
    trace_.time_base = base;
  }
  for (size_t i = 0; i < trace_.lanes.size(); ++i) {
    const auto& [process, thread] = lane_ids_[i];
    const auto named = thread_names_.find({process.key(), thread.key()});
    if (named != thread_names_.end()) trace_.lanes[i].name = named->second.name;
  }
  trace_.counts.kept = static_cast<int64_t>(trace_.size());
  sort_events(trace_.events);
  align_device_clocks(trace_);
  return std::move(trace_);
}

}  // namespace forerun
