// Slices of an uploaded trace's timeline (report/trace_timeline.h), for a screen that zooms.
//
//   {"file": ID, "from": 0, "to": 5000000, "px": 1200}     from and to: nanoseconds from the trace's begin
// The traces that were asked of last are kept (ask/kept_traces.h), so that only the first question pays for reading the file.
#pragma once

#include <optional>
#include <string>

#include "ask/kept_traces.h"
#include "base/result.h"
#include "report/trace_timeline.h"

namespace forerun::serve {

class TraceSlicer {
 public:
  explicit TraceSlicer(ask::KeptTraces& traces) : traces_(traces) {}
  Result<std::string> answer(const std::string& words);

 private:
  struct Kept {
    std::string file;
    TimelineRows rows;
  };
  ask::KeptTraces& traces_;
  std::optional<Kept> kept_;
};

}  // namespace forerun::serve
