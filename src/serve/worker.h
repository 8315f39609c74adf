// Worker: a process of its own that answers questions for the server, so that a file or a question that brings it down, or takes
// all memory, costs one answer and not the server.
//
// It reads from its standard input and answers on its standard output, one question at a time:
//   predict 42 0\n{"model": ...}                the question's name, the bytes of its words, whether others are in flight
//   p 3 100 configurations\n                    progress, any number of times
//   a 1234\n{...}  or  f 80\n{"what": ...}      the answer, or the Error
// Beside the questions of ask/: `kind` tells what an upload is, `slices` gives a trace's timeline (serve/trace_slices.h). Its limits
// are the kernel's: of memory (RLIMIT_AS), no file may be written (RLIMIT_FSIZE), and where the kernel has Landlock, nothing may be
// opened but Forerun's data, the uploads and system libraries.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace forerun::serve {

struct WorkerOptions {
  std::string uploads;       // the folder that it works in; empty: none
  int64_t memory_bytes = 0;  // 0: no limit
};

// Answers until its input ends. An Error where it cannot begin.
Status run_worker(const WorkerOptions& options);

// Whether this kernel bounds what a process opens.
bool has_landlock();

// An Error as a worker hands it over, and back.
std::string error_json(const Error& error);
Error error_from_json(const std::string& json);

}  // namespace forerun::serve
