// reduction_buffer: the memory that a reduction takes when several thread blocks work on one result.
//
// PyTorch's reduction kernel (sum, mean, ...) gives each thread some values; where a thread would get 256 or more and
// the GPU has room, blocks share an output and leave partial results in a buffer, with a counter for each. The rule
// follows how that kernel chooses its blocks. Left out: tensors of more than 2^31 elements, which it cuts in parts.
#pragma once

#include <cstdint>

namespace forerun {

struct Reduction {
  int64_t outputs = 1;          // results
  int64_t inputs = 1;           // elements that go into each
  bool along_fastest = false;   // reduced along the dimension that is contiguous in memory
  bool whole = false;           // everything into one result, of contiguous memory
  int64_t output_multiple = 0;  // extent of the contiguous dimension that is kept: its divisibility allows vectors
};

struct ReductionBuffer {
  int64_t partial = 0;   // bytes of partial results; 0: none needed
  int64_t counters = 0;  // bytes
};

struct ReductionDevice {
  int64_t multiprocessors = 132;
  int64_t threads = 2048;  // of a multiprocessor
};

ReductionBuffer reduction_buffer(const Reduction& reduction, const ReductionDevice& device = {});

}  // namespace forerun
