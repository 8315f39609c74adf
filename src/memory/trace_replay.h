// replay_trace: puts the recorded requests of a training run through the simulated allocator.
//
// Only what the program asked for is taken from the trace: sizes, streams and the order of requests and frees. Which
// blocks they get, and when a new segment is due, is simulated. Where the trace has true addresses (run/2), new
// segments get the addresses that the driver gave, so that every block can be compared; where it has mere ids (run/1),
// DeviceMemory chooses them. A retry is told by the segments that the trace gives back.
#pragma once

#include "ingest/capture/allocator_trace.h"
#include "memory/caching_allocator.h"

namespace forerun {

struct TraceReplay {
  AllocatorFigures figures;
  int64_t events = 0;  // requests and frees
  int64_t allocations = 0;
  bool true_addresses = false;
  int64_t misplaced = 0;     // allocations at another address than the recorded one, where addresses are true
  int64_t odd_segments = 0;  // segments taken where the trace has none, or not taken where it has one
};

// `base_allocated`: bytes in use when the trace began; if few, taken as blocks of one 4-byte number each, as a random
// state leaves them.
TraceReplay replay_trace(const AllocatorTrace& trace, const AllocatorSettings& settings = {},
                         int64_t base_allocated = 0);

}  // namespace forerun
