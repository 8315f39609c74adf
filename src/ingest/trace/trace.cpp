#include "ingest/trace/trace.h"

#include <algorithm>
#include <numeric>

namespace forerun {
namespace {

template <class T>
void permute(CompactColumn<T>& column, const std::vector<uint32_t>& order) {
  column.permute(order);
}

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

void TraceEvents::append_numbers(const TraceEvents& rows) {
  const auto as_it_is = [](auto number) { return number; };
  start.insert(start.end(), rows.start.begin(), rows.start.end());
  duration.insert(duration.end(), rows.duration.begin(), rows.duration.end());
  kind.insert(kind.end(), rows.kind.begin(), rows.kind.end());
  correlation.append(rows.correlation, as_it_is);
  external_id.append(rows.external_id, as_it_is);
  sequence.append(rows.sequence, as_it_is);
  bytes.append(rows.bytes, as_it_is);
  forward_thread.append(rows.forward_thread, as_it_is);
}

size_t TraceEvents::memory() const {
  const auto held = [](const auto& column) { return column.capacity() * sizeof(column[0]); };
  return held(start) + held(duration) + held(kind) + name.memory() + lane.memory() + correlation.memory() +
         external_id.memory() + sequence.memory() + bytes.memory() + forward_thread.memory() + detail.memory() +
         collective.memory();
}

size_t Trace::memory() const {
  size_t total = events.memory() + ops.capacity() * sizeof(OpDetail) + kernels.capacity() * sizeof(KernelDetail) +
                 syncs.capacity() * sizeof(TraceSync) + collectives.capacity() * sizeof(TraceCollective);
  constexpr size_t kPerName = sizeof(std::string) + 48;  // the string and its entry in the index
  for (size_t i = 0; i < names.size(); ++i) total += names[NameId(i)].capacity() + kPerName;
  return total;
}

namespace {

// The rows in order of start; of equal starts the longer first, then in the order they have. Counts digits, from the last to the
// first, instead of comparing: a trace of a gigabyte is sorted in a fraction of the time.
std::vector<uint32_t> in_order(const TraceEvents& events) {
  struct Keyed {
    uint64_t start;  // from the first
    uint32_t row;
  };
  constexpr unsigned kDigit = 11;
  constexpr uint64_t kDigits = uint64_t{1} << kDigit;
  const auto [first, last] = std::minmax_element(events.start.begin(), events.start.end());
  const uint64_t range = static_cast<uint64_t>(*last) - static_cast<uint64_t>(*first);
  std::vector<Keyed> rows(events.size()), sorted(events.size());
  for (uint32_t i = 0; i < rows.size(); ++i) {
    rows[i] = {static_cast<uint64_t>(events.start[i]) - static_cast<uint64_t>(*first), i};
  }
  std::vector<uint32_t> place(kDigits);
  for (unsigned shift = 0; shift < 64 && (range >> shift) != 0; shift += kDigit) {
    std::fill(place.begin(), place.end(), 0U);
    for (const Keyed& row : rows) ++place[(row.start >> shift) % kDigits];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), 0U);
    for (const Keyed& row : rows) sorted[place[(row.start >> shift) % kDigits]++] = row;
    rows.swap(sorted);
  }
  sorted = {};
  for (size_t from = 0, until = 0; from < rows.size(); from = until) {
    for (until = from + 1; until < rows.size() && rows[until].start == rows[from].start;) ++until;
    if (until == from + 1) continue;
    std::stable_sort(rows.begin() + static_cast<std::ptrdiff_t>(from),
                     rows.begin() + static_cast<std::ptrdiff_t>(until),
                     [&](const Keyed& a, const Keyed& b) { return events.duration[a.row] > events.duration[b.row]; });
  }
  std::vector<uint32_t> order(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) order[i] = rows[i].row;
  return order;
}

bool are_in_order(const TraceEvents& events) {
  for (size_t i = 1; i < events.size(); ++i) {
    if (events.start[i - 1] > events.start[i]) return false;
    if (events.start[i - 1] == events.start[i] && events.duration[i - 1] < events.duration[i]) return false;
  }
  return true;
}

}  // namespace

void sort_events(TraceEvents& events) {
  if (are_in_order(events)) return;
  const std::vector<uint32_t> order = in_order(events);
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
