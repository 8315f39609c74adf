// KeptTraces: profiler traces of the last question, for the next one on the same files.
//
// A gigabyte takes seconds to read: who asks of a trace again (another stretch of its timeline, its critical path) does not wait for
// that twice. What a question does not name is forgotten before its own files are read, so that memory is that of one question.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/trace.h"

namespace forerun::ask {

class KeptTraces {
 public:
  // One group for the traces of each run; what is answered is in the same order, each in order of rank. It holds until the next
  // question.
  Result<std::vector<std::span<const Trace>>> read(const std::vector<std::vector<TraceFile>>& groups, bool partial,
                                                   const WorkControl& control);

  // The trace of a file that is kept; null where there is none.
  [[nodiscard]] const Trace* find(const std::string& path) const;

 private:
  struct Group {
    std::vector<std::string> paths;
    bool partial = false;
    std::vector<Trace> traces;
  };
  std::vector<Group> groups_;
};

}  // namespace forerun::ask
