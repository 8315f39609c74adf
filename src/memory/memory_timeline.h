// MemoryTimeline: what one iteration holds in memory, op by op.
//
// The iteration is the one that has the peak. Along the axis stand its ops in program order, not time: what an op takes and
// frees while it runs lies within its place.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "memory/memory_log.h"

namespace forerun {

// After an event.
struct MemorySample {
  double at = 0;  // the op's number and how far through its events; -1 to 0 before the first op
  BytesByUse live = {};
  int64_t reserved = 0;
  [[nodiscard]] int64_t total() const;
};

struct MemoryTimeline {
  std::string title;
  std::vector<MemorySample> samples;
  size_t peak = 0;                    // among the samples
  std::string peak_op;                // "aten.mm.default in lm_head"
  std::array<size_t, 4> phases = {};  // ops at which forward, backward, update begin, and the number of ops
  int iteration = 0;                  // the first is 0
  Bytes device_memory;                // less the CUDA context; 0: not shown
};

MemoryTimeline memory_timeline(const Graph& graph, const MemoryLog& log, const std::string& title);

}  // namespace forerun
