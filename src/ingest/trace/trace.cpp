#include "ingest/trace/trace.h"

#include <algorithm>
#include <numeric>

namespace forerun {
namespace {

template <class T>
void permute(std::vector<T>& column, const std::vector<uint32_t>& order) {
  std::vector<T> sorted(column.size());
  for (size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
}

// Bytes of one element of a torch dtype as process groups write it ("Float", "BFloat16").
int64_t element_bytes(std::string_view dtype) {
  constexpr std::pair<std::string_view, int64_t> kSizes[] = {
      {"Byte", 1},        {"Char", 1},  {"Bool", 1},     {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
      {"Half", 2},        {"Short", 2}, {"BFloat16", 2}, {"Int", 4},           {"Float", 4},
      {"ComplexHalf", 4}, {"Long", 8},  {"Double", 8},   {"ComplexFloat", 8},  {"ComplexDouble", 16}};
  for (const auto& [name, bytes] : kSizes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

}  // namespace

std::string_view name_of(EventKind kind) {
  constexpr std::array<std::string_view, kEventKinds> kNames = {"op",     "annotation", "runtime",        "driver",
                                                                "python", "overhead",   "kernel",         "copy",
                                                                "fill",   "sync",       "gpu_annotation", "other"};
  return kNames[static_cast<size_t>(kind)];
}

int64_t TraceCollective::bytes(const StringTable& names) const {
  const int64_t size = dtype.valid() ? element_bytes(names[dtype]) : 0;
  const int64_t elements = std::max(in_elements, out_elements);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 16;
  return size == 0 || elements < 0 || elements > kMost ? -1 : size * elements;
}

EventIndex TraceEvents::add(const TraceEvent& event) {
  start.push_back(event.start);
  duration.push_back(event.duration);
  name.push_back(event.name);
  kind.push_back(event.kind);
  lane.push_back(event.lane);
  correlation.push_back(event.correlation);
  external_id.push_back(event.external_id);
  sequence.push_back(event.sequence);
  bytes.push_back(event.bytes);
  forward_thread.push_back(event.forward_thread);
  detail.push_back(event.detail);
  collective.push_back(event.collective);
  return static_cast<EventIndex>(size() - 1);
}

size_t TraceEvents::memory() const {
  const auto held = [](const auto& column) { return column.capacity() * sizeof(column[0]); };
  return held(start) + held(duration) + held(name) + held(kind) + held(lane) + held(correlation) + held(external_id) +
         held(sequence) + held(bytes) + held(forward_thread) + held(detail) + held(collective);
}

size_t Trace::memory() const {
  size_t total = events.memory() + ops.capacity() * sizeof(OpDetail) + kernels.capacity() * sizeof(KernelDetail) +
                 syncs.capacity() * sizeof(TraceSync) + collectives.capacity() * sizeof(TraceCollective);
  constexpr size_t kPerName = sizeof(std::string) + 48;  // the string and its entry in the index
  for (size_t i = 0; i < names.size(); ++i) total += names[NameId(i)].capacity() + kPerName;
  return total;
}

void sort_events(TraceEvents& events) {
  std::vector<uint32_t> order(events.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto before = [&](uint32_t a, uint32_t b) {
    if (events.start[a] != events.start[b]) return events.start[a] < events.start[b];
    if (events.duration[a] != events.duration[b]) return events.duration[a] > events.duration[b];
    return a < b;
  };
  if (std::is_sorted(order.begin(), order.end(), before)) return;
  std::sort(order.begin(), order.end(), before);
  permute(events.start, order);
  permute(events.duration, order);
  permute(events.name, order);
  permute(events.kind, order);
  permute(events.lane, order);
  permute(events.correlation, order);
  permute(events.external_id, order);
  permute(events.sequence, order);
  permute(events.bytes, order);
  permute(events.forward_thread, order);
  permute(events.detail, order);
  permute(events.collective, order);
}

}  // namespace forerun
