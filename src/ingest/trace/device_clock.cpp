#include "ingest/trace/device_clock.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ingest/trace/trace_links.h"

namespace forerun {
namespace {

// In nanoseconds, as everywhere.
constexpr int64_t kLaunch = 5'000;               // from a call to its work, at the least that GPUs show
constexpr int64_t kSlack = 5'000;                // of a conversion that is right
constexpr int64_t kStraggler = 1'000'000;        // from the earliest work to the others: its link is wrong
constexpr int64_t kLongest = 3'600'000'000'000;  // an hour; beyond it the stamps are no clock's
constexpr size_t kOneIn = 1000;                  // links that may be wrong
constexpr int64_t kUnbound = INT64_MAX;

struct LaunchedWork {
  int64_t launched = 0, start = 0, end = 0;
  [[nodiscard]] int64_t early() const { return launched - start; }
};
using WorkByDevice = std::map<int64_t, std::vector<LaunchedWork>>;

bool within_reach(int64_t a, int64_t b) {
  int64_t apart = 0;
  return !__builtin_sub_overflow(a, b, &apart) && apart > -kLongest && apart < kLongest;
}

// Of each device, in order of the launches.
WorkByDevice launched_work(const Trace& trace) {
  const std::vector<EventIndex> launches = launches_of(trace);
  WorkByDevice devices;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (!is_device_work(trace.events.kind[i]) || launches[i] == kNoIndex) continue;
    const LaunchedWork work{trace.events.start[launches[i]], trace.events.start[i], trace.events.end(i)};
    if (within_reach(work.launched, work.start)) devices[trace.lane_of(i).process].push_back(work);
  }
  for (auto& [device, work] : devices) {
    std::stable_sort(work.begin(), work.end(),
                     [](const LaunchedWork& a, const LaunchedWork& b) { return a.launched < b.launched; });
  }
  return devices;
}

bool waits_for_device(const std::string& name) {
  return name.find("DeviceSynchronize") != std::string::npos || name.find("CtxSynchronize") != std::string::npos;
}

// What the shift may be at the most: when the host returned from a sync of the device, all work launched before had ended.
int64_t bound_of_syncs(const Trace& trace, const std::vector<LaunchedWork>& work) {
  int64_t most = kUnbound, last_end = INT64_MIN;
  size_t launched = 0;
  std::vector<bool> waits(trace.names.size());
  for (size_t i = 0; i < waits.size(); ++i) waits[i] = waits_for_device(trace.names[NameId(i)]);
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (!is_cuda_call(trace.events.kind[i]) || !waits[trace.events.name[i].value]) continue;
    for (; launched < work.size() && work[launched].launched < trace.events.start[i]; ++launched) {
      last_end = std::max(last_end, work[launched].end);
    }
    if (launched > 0 && within_reach(trace.events.end(i), last_end)) {
      most = std::min(most, trace.events.end(i) - last_end);
    }
  }
  return most;
}

// What it must be at least: the time by which work began before its launch.
int64_t bound_of_launches(const std::vector<LaunchedWork>& work, int64_t most) {
  std::vector<int64_t> early;
  for (const LaunchedWork& one : work) early.push_back(one.early());
  const size_t wrong = std::max<size_t>(1, early.size() / kOneIn);
  const auto others = early.begin() + static_cast<std::ptrdiff_t>(std::min(wrong, early.size() - 1));
  std::nth_element(early.begin(), others, early.end(), std::greater<>());
  const int64_t earliest = *std::max_element(early.begin(), others + 1);
  const int64_t usual = early.size() > wrong ? *others : 0;
  const bool agrees_with_syncs = most != kUnbound && earliest <= most + kSlack;
  return agrees_with_syncs || earliest - std::max<int64_t>(usual, 0) <= kStraggler ? earliest : usual;
}

// Work, and what the device's tracer says beside it.
bool has_device_clock(const TraceLane& lane) {
  return lane.kind == TraceLane::Kind::gpu_stream || lane.kind == TraceLane::Kind::gpu_sync ||
         lane.kind == TraceLane::Kind::gpu_annotation;
}

// Once a clock is known to be off, the work that came soonest behind its launch did so within the usual time.
int64_t shift_of(int64_t least, int64_t most) {
  if (least <= 0 && most >= -kSlack) return 0;
  return std::max(least, std::min(least + kLaunch, most));
}

}  // namespace

void align_device_clocks(Trace& trace) {
  const WorkByDevice devices = launched_work(trace);
  std::map<int64_t, int64_t> shifts;
  for (const auto& [device, work] : devices) {
    // A sync waits for the device that its thread has chosen, which the file does not tell.
    const int64_t most = devices.size() == 1 ? bound_of_syncs(trace, work) : kUnbound;
    const int64_t shift = shift_of(bound_of_launches(work, most), most);
    if (shift != 0) shifts.emplace(device, shift);
  }
  if (shifts.empty()) return;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (!has_device_clock(trace.lane_of(i))) continue;
    const auto found = shifts.find(trace.lane_of(i).process);
    int64_t moved = 0, end = 0;
    if (found == shifts.end() || __builtin_add_overflow(trace.events.start[i], found->second, &moved) ||
        __builtin_add_overflow(moved, trace.events.duration[i], &end)) {
      continue;
    }
    trace.events.start[i] = moved;
    if (std::abs(found->second) > std::abs(trace.device_shift)) trace.device_shift = found->second;
  }
  sort_events(trace.events);
}

}  // namespace forerun
