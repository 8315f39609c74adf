// A MemoryTimeline as counters for a trace viewer.
#include <algorithm>

#include "base/json_writer.h"
#include "report/memory_timeline.h"

namespace forerun {
namespace {

JsonWriter& begin_event(JsonWriter& json, std::string_view name, std::string_view phase) {
  return json.begin_object().field("name", name).field("ph", phase).field("pid", 0);
}

void write_phases(JsonWriter& json, const MemoryTimeline& timeline) {
  const char* names[] = {"forward", "backward", "update"};
  for (size_t phase = 0; phase < 3; ++phase) {
    const size_t length = timeline.phases[phase + 1] - timeline.phases[phase];
    if (length == 0) continue;
    begin_event(json, names[phase], "X")
        .field("tid", 0)
        .field("ts", timeline.phases[phase])
        .field("dur", length)
        .end_object();
  }
}

}  // namespace

std::string to_chrome_counters(const MemoryTimeline& timeline) {
  JsonWriter json;
  json.begin_object().field("displayTimeUnit", "ns").key("traceEvents").begin_array();
  begin_event(json, "process_name", "M").key("args").begin_object().field("name", "memory: " + timeline.title);
  json.end_object().end_object();
  write_phases(json, timeline);
  for (const MemorySample& sample : timeline.samples) {
    const double ts = std::max(0.0, sample.at);
    begin_event(json, "allocated", "C").field("ts", ts).key("args").begin_object();
    for (size_t use = 0; use < kUses; ++use) json.field(name_of(static_cast<Use>(use)), sample.live[use]);
    json.end_object().end_object();
    begin_event(json, "reserved", "C").field("ts", ts).key("args").begin_object().field("bytes", sample.reserved);
    json.end_object().end_object();
  }
  return json.end_array().end_object().take() + "\n";
}

}  // namespace forerun
