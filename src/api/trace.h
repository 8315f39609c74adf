// Profiler traces: files -> ranks -> analysis.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "timeline/trace_analysis.h"

namespace forerun {

// The trace files that the paths name: files as they are, folders by the *.json, *.json.gz and *.json.zst in and below
// them in order of name. An Error where a path is not there or a folder has none.
Result<std::vector<std::string>> trace_files(const std::vector<std::string>& paths);

// Reads each file as one rank, and puts them in order of rank where all tell theirs. `progress`, where given, is called
// now and then with the file and the bytes of JSON read so far. `partial`: of files cut short, what came before the cut.
using TraceProgress = std::function<void(const std::string& file, int64_t bytes)>;
Result<std::vector<Trace>> read_traces(const std::vector<std::string>& paths, const TraceProgress& progress = {},
                                       bool partial = false);

// The files that are execution traces (ingest/chakra), where all are; none where none is. An Error where only some are:
// the two kinds say different things.
Result<std::vector<std::string>> execution_traces(const std::vector<std::string>& paths);

}  // namespace forerun
