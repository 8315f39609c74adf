// What an execution trace holds: nodes by kind, ops, collectives and their bytes, gradients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingest/chakra/execution_trace.h"

namespace forerun {

struct ExecutionOpRow {
  std::string name;
  int64_t count = 0;
  int64_t time_us = -1;  // -1: the file has no times
};

struct ExecutionCollectiveRow {
  std::string name;
  int64_t count = 0, bytes = 0, largest = 0;  // bytes of a rank's messages
  int64_t group_size = -1;                    // -1: not told, or several
};

struct ExecutionSummary {
  std::string file, format, schema;
  std::vector<int64_t> kinds;  // nodes by NodeKind
  int64_t nodes = 0, control = 0, data = 0;
  int64_t dangling = 0;  // dependencies on nodes that the file does not hold
  int64_t threads = 0, with_shapes = 0;
  int64_t gradients = 0, gradient_bytes = 0;
  std::vector<ExecutionOpRow> ops;                  // by time, then count
  std::vector<ExecutionCollectiveRow> collectives;  // by bytes
  int64_t skipped = 0;
  bool truncated = false;
  std::string first_problem;
};

ExecutionSummary summary_of(const ExecutionTrace& trace);

}  // namespace forerun
