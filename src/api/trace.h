// Profiler traces: files -> ranks -> analysis.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/work_control.h"
#include "ingest/importers.h"
#include "timeline/trace_analysis.h"

namespace forerun {

struct TraceFile {
  std::string path;
  FileKind kind = FileKind::profiler_trace;  // or execution_trace, or one that cannot be told: its reader says more
};

// The trace files that the paths name: files as they are, folders by the *.json, *.json.gz and *.json.zst in and below
// them in order of name. An Error where a path is not there, names a file that `verb` does not take, or is a folder
// without any.
Result<std::vector<TraceFile>> trace_files(const std::vector<std::string>& paths, std::string_view verb);

// Reads each file as one rank, and puts them in order of rank where all tell theirs. `partial`: of files cut short, what
// came before the cut. Progress counts the bytes of JSON of each file.
Result<std::vector<Trace>> read_traces(const std::vector<TraceFile>& files, bool partial = false,
                                       const WorkControl& control = {});

// One file; an Error that says what it is where it is no profiler trace.
Result<Trace> read_profiler_trace(const std::string& path, std::string_view verb, const WorkControl& control = {});

// Whether the files are execution traces (ingest/chakra). An Error where only some are: the two kinds say different
// things.
Result<bool> are_execution_traces(const std::vector<TraceFile>& files);

}  // namespace forerun
