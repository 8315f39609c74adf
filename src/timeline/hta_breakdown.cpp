#include "timeline/hta_breakdown.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace forerun {
namespace {

constexpr int64_t kHtaKernelGap = 30;  // microseconds; a shorter pause is kernel wait

// The double that JSON's decimal microseconds are read as.
double file_microseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds / 1000) + static_cast<double>(nanoseconds % 1000) / 1000.0;
}

// One row: whole microseconds, and the end may lie before the start.
struct HtaWork {
  int64_t begin = 0, end = 0;
  EventIndex event = kNoIndex;
};

class HtaCounting {
 public:
  HtaCounting(const Trace& trace, const TraceLinks& links) : trace_(trace), links_(links) { find_last_step(); }

  [[nodiscard]] bool counts(EventIndex i) const {
    const EventKind kind = trace_.events.kind[i];
    if (kind == EventKind::sync) {
      const uint32_t detail = trace_.events.detail[i];
      if (detail == kNoIndex || trace_.syncs[detail].stream == -1) return false;
    } else if (!is_device_work(kind)) {
      return false;
    }
    return until_ == INT64_MAX || (links_.launch[i] != kNoIndex && begin_of(links_.launch[i]) < until_);
  }

  // In order of start, whole microseconds; where these are equal in the order of the exact times.
  [[nodiscard]] std::vector<HtaWork> rows() const {
    std::vector<HtaWork> rows;
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (counts(i)) rows.push_back({begin_of(i), end_of(i), i});
    }
    std::stable_sort(rows.begin(), rows.end(), [](const HtaWork& a, const HtaWork& b) { return a.begin < b.begin; });
    return rows;
  }

  void add_pause(IdleCauses& causes, int64_t from, const HtaWork& work) const {
    const EventIndex call = links_.launch[work.event];
    const Nanoseconds length((work.begin - from) * 1000);
    if (call != kNoIndex && begin_of(call) > from) {
      causes.host_wait += length;
    } else {
      (work.begin - from < kHtaKernelGap ? causes.kernel_wait : causes.other) += length;
    }
  }

 private:
  [[nodiscard]] double start_of(EventIndex i) const {
    return file_microseconds(trace_.events.start[i] - trace_.time_base);
  }
  [[nodiscard]] int64_t begin_of(EventIndex i) const { return static_cast<int64_t>(std::ceil(start_of(i))); }
  [[nodiscard]] int64_t end_of(EventIndex i) const {
    return static_cast<int64_t>(std::floor(start_of(i) + file_microseconds(trace_.events.duration[i])));
  }

  void find_last_step() {
    std::set<NameId> names;
    int64_t last = INT64_MIN;
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (trace_.events.kind[i] != EventKind::annotation && trace_.events.kind[i] != EventKind::op) continue;
      if (trace_.name(i).find("ProfilerStep") == std::string::npos) continue;
      names.insert(trace_.events.name[i]);
      last = std::max(last, begin_of(i));
    }
    if (names.size() > 1) until_ = last;
  }

  const Trace& trace_;
  const TraceLinks& links_;
  int64_t until_ = INT64_MAX;  // microseconds: the start of the last step
};

// Rows put together where one begins no later than another one has ended, by the same rule for those that end before
// they begin.
Intervals put_together(const std::vector<HtaWork>& rows) {
  Intervals merged;
  for (const HtaWork& row : rows) {
    if (merged.empty() || row.begin * 1000 > merged.back().end) {
      merged.push_back({row.begin * 1000, row.end * 1000});
    } else {
      merged.back().end = std::max(merged.back().end, row.end * 1000);
    }
  }
  return merged;
}

bool is_hta_memory(const std::string& name) {
  return name.starts_with("Memcpy") || name.starts_with("Memset") || name.starts_with("dma");
}

WorkKind hta_kind(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (name.starts_with("nccl") && has("Kernel")) return WorkKind::communication;
  if (is_hta_memory(name)) return WorkKind::copy;
  return has("Memcpy") || has("Sync") ? WorkKind::none : WorkKind::compute;
}

std::vector<StreamUse> hta_streams(const Trace& trace, const HtaCounting& counting, const std::vector<HtaWork>& rows) {
  std::map<int64_t, std::vector<HtaWork>> by_stream;
  for (const HtaWork& row : rows) {
    if (is_device_work(trace.events.kind[row.event])) by_stream[trace.lane_of(row.event).thread].push_back(row);
  }
  std::vector<StreamUse> streams;
  for (const auto& [number, work] : by_stream) {
    StreamUse use;
    use.stream = number;
    use.events = static_cast<int64_t>(work.size());
    use.busy = length_of(put_together(work));
    for (size_t i = 1; i < work.size(); ++i) counting.add_pause(use.idle, work[i - 1].end, work[i]);
    streams.push_back(use);
  }
  return streams;
}

}  // namespace

std::vector<EventIndex> work_like_hta(const Trace& trace, const TraceLinks& links) {
  const HtaCounting counting(trace, links);
  std::vector<EventIndex> work;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (is_device_work(trace.events.kind[i]) && counting.counts(i)) work.push_back(i);
  }
  return work;
}

std::vector<DeviceBreakdown> break_down_like_hta(const Trace& trace, const TraceLinks& links) {
  const HtaCounting counting(trace, links);
  const std::vector<HtaWork> rows = counting.rows();
  if (rows.empty()) return {};
  const auto of = [&](WorkKind kind) {
    std::vector<HtaWork> some;
    for (const HtaWork& row : rows) {
      if (hta_kind(trace.name(row.event)) == kind) some.push_back(row);
    }
    return put_together(some);
  };
  const Intervals busy = put_together(rows), compute = of(WorkKind::compute), sent = of(WorkKind::communication);
  DeviceBreakdown device;
  device.device = trace.lane_of(rows.front().event).process;
  device.span = Nanoseconds(busy.back().end - busy.front().begin);
  device.idle = device.span - length_of(busy);
  device.compute = length_of(compute);
  device.communication = length_of(sent);
  device.copy = length_of(of(WorkKind::copy));
  device.overlap = length_of(intersection(sent, compute));
  device.exposed_communication = device.communication - device.overlap;
  device.exposed_copy = length_of(busy) - device.compute - device.exposed_communication;
  int64_t until = rows.front().end;
  for (const HtaWork& row : rows) {
    if (row.begin > until) counting.add_pause(device.causes, until, row);
    until = std::max(until, row.end);
    device.events += is_device_work(trace.events.kind[row.event]) ? 1 : 0;
  }
  device.streams = hta_streams(trace, counting, rows);
  return {device};
}

}  // namespace forerun
