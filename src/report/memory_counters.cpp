// A MemoryTimeline as counters for a trace viewer.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/memory_timeline.h"

namespace forerun {

std::string to_chrome_counters(const MemoryTimeline& timeline) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 0}, {"args", {{"name", "memory: " + timeline.title}}}});
  const char* names[] = {"forward", "backward", "update"};
  for (size_t phase = 0; phase < 3; ++phase) {
    const size_t length = timeline.phases[phase + 1] - timeline.phases[phase];
    if (length == 0) continue;
    events.push_back(
        {{"name", names[phase]}, {"ph", "X"}, {"pid", 0}, {"tid", 0}, {"ts", timeline.phases[phase]}, {"dur", length}});
  }
  for (const MemorySample& sample : timeline.samples) {
    Json kinds = Json::object();
    for (size_t use = 0; use < kUses; ++use) kinds[std::string(name_of(static_cast<Use>(use)))] = sample.live[use];
    const double ts = std::max(0.0, sample.at);
    events.push_back({{"name", "allocated"}, {"ph", "C"}, {"pid", 0}, {"ts", ts}, {"args", kinds}});
    events.push_back(
        {{"name", "reserved"}, {"ph", "C"}, {"pid", 0}, {"ts", ts}, {"args", {{"bytes", sample.reserved}}}});
  }
  return Json{{"displayTimeUnit", "ns"}, {"traceEvents", events}}.dump() + "\n";
}

}  // namespace forerun
