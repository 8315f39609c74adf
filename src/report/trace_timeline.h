// A trace's timeline as a screen can show it: of a stretch of time, for every lane and depth of nesting, at most as many pieces
// as there are pixels. What is shorter than a pixel is drawn together with its neighbours of the same pixel, so that a trace of
// a gigabyte is looked at a few thousand pieces at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingest/trace/trace.h"

namespace forerun {

struct TimelinePiece {
  int64_t start = 0, end = 0;  // nanoseconds from the trace's begin
  int64_t events = 0;          // more than one: drawn together
  EventIndex longest = 0;      // the event, or the longest of them
};

struct TimelineLane {
  LaneIndex lane = 0;
  uint32_t depth = 0;
  std::vector<TimelinePiece> pieces;
};

// A stretch of time, in nanoseconds from the trace's begin.
struct TimelineStretch {
  int64_t from = 0, to = 0;
  int64_t px = 1;
};

// Rows of a trace by lane and depth of nesting; what nests deeper than `deepest` is left out.
class TimelineRows {
 public:
  explicit TimelineRows(const Trace& trace, uint32_t deepest = 64);

  // Streams of GPUs first, then host threads, then the rest.
  [[nodiscard]] std::vector<TimelineLane> lanes(const Trace& trace, const TimelineStretch& stretch) const;
  [[nodiscard]] int64_t length() const { return length_; }  // nanoseconds

 private:
  struct Row {
    LaneIndex lane;
    uint32_t depth;
    std::vector<EventIndex> events;  // in order of start; none overlaps the next
  };
  std::vector<Row> rows_;
  int64_t begin_ = 0, length_ = 0;
};

// {"schema": "forerun.timeline/1", "from", "to", "length_ns", "events", "lanes": [{"lane", "kind", "process", "thread", "name",
// "depth", "start": [], "end": [], "events": [], "name_of": [], "kind_of": []}], "names": {"NUMBER": "..."}}
std::string timeline_json(const Trace& trace, const TimelineRows& rows, const TimelineStretch& stretch);

}  // namespace forerun
