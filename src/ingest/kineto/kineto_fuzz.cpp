// Fuzzes the reader of profiler traces: any bytes give a trace that keeps its promises, or an Error, and the same one with
// several threads. Blocks of several sizes, so that the places where the text is cut vary.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/kineto/kineto_reader.h"
#include "ingest/trace/trace_difference.h"
#include "ingest/trace/trace_links.h"

namespace {

void check(const forerun::Trace& trace) {
  const forerun::TraceEvents& events = trace.events;
  const size_t size = events.size();
  CHECK(events.duration.size() == size && events.lane.size() == size && events.collective.size() == size,
        "columns of unequal length");
  for (forerun::EventIndex i = 0; i < size; ++i) {
    CHECK(events.duration[i] >= 0, "a negative duration");
    CHECK(events.end(i) >= events.start[i], "an end that overflows");
    CHECK(i == 0 || events.start[i - 1] <= events.start[i], "rows out of order");
    CHECK(events.lane[i] < trace.lanes.size() && events.name[i].value < trace.names.size(), "an index out of range");
  }
  const forerun::TraceLinks links = forerun::link_events(trace);
  CHECK(links.linked <= links.device_work, "more links than work");
  for (const forerun::EventIndex i : links.launched_list) CHECK(i < size, "a link out of range");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const size_t block : {size_t{64}, size_t{300}, size_t{1} << 16}) {
    forerun::KinetoOptions options;
    options.block_bytes = block;
    options.largest_event = block == 64 ? 512 : size_t{1} << 20;
    options.partial = block != 300;
    options.threads = 1;
    const auto trace = forerun::read_kineto_text(text, "fuzz.json", options);
    if (trace.ok()) {
      check(*trace);
    } else {
      CHECK(!trace.error().what.empty() && !trace.error().where.empty(), "an error without what or where");
    }
    options.threads = 2;
    const auto apart = forerun::read_kineto_text(text, "fuzz.json", options);
    CHECK(apart.ok() == trace.ok(), "two threads disagree with one whether it is a trace");
    CHECK(!trace.ok() || forerun::difference(*trace, *apart).empty(), "two threads give another trace than one");
    CHECK(trace.ok() || trace.error().message() == apart.error().message(), "two threads say something else than one");
  }
  return 0;
}
