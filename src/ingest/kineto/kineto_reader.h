// Reads PyTorch profiler traces (Kineto's Chrome trace JSON; plain, gzip or Zstandard) into a Trace.
//
// The file is read in blocks cut between events; each block is parsed by simdjson and forgotten, so memory is that of the
// compact trace. Several threads parse a block each and add it behind those before it: the trace is the same to the bit however
// many they are. Blocks are cut by the looks of the text, which may be within an event that holds lists of what looks like events:
// such an event goes on with the next block. A block that does not parse is taken apart event by event: a broken one (unescaped quotes, backslashes,
// control characters, bad UTF-8) is mended or skipped, and counted. A file that ends before its last bracket, or whose
// compressed data ends early, is an Error that says where, and so is one that holds a second trace behind the first.
#pragma once

#include <string>
#include <string_view>

#include "base/work_control.h"
#include "ingest/trace/trace.h"

namespace forerun {

struct KinetoOptions {
  size_t block_bytes = size_t{1} << 18;    // of JSON parsed at a time
  size_t largest_event = size_t{1} << 26;  // an event of more bytes is skipped
  bool partial = false;                    // of a file cut short, take what came before the cut
  size_t threads = 0;                      // that parse; 0: as many as the machine has, but few gain by more than eight
  Work* work = nullptr;                    // counts the bytes of JSON read, and may end the reading
};

// An Error where the file cannot be opened, is cut short, or is no trace at all (no traceEvents, or none that can be read).
Result<Trace> read_kineto(const std::string& path, const KinetoOptions& options);
inline Result<Trace> read_kineto(const std::string& path) { return read_kineto(path, KinetoOptions()); }

// The same of text in memory; `name` stands for the file.
Result<Trace> read_kineto_text(std::string_view text, const std::string& name, const KinetoOptions& options);
inline Result<Trace> read_kineto_text(std::string_view text, const std::string& name) {
  return read_kineto_text(text, name, KinetoOptions());
}

}  // namespace forerun
