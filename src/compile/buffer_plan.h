// Whose memory a value of a compiled pass takes.
//
// A generated kernel writes over an input that nobody reads any more, where both are of one type and size and lie alike. What is freed
// later waits for a value of the same type and size and is handed on to it, unless keeping it until then would raise the peak that the
// scheduler estimated. Libraries that make their results themselves take no memory over; what they made can be taken. Rules from
// decide_inplace_update of torch/_inductor/scheduler.py and the memory planning of codegen/wrapper.py of PyTorch 2.11.
// Left out: how views of an input are read, which can keep a kernel from writing over it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compile/fusion.h"
#include "compile/joint_graph.h"

namespace forerun::compile {

struct PassValues {
  const std::vector<bool>& stored;                         // by value: somebody beyond this pass reads it
  const std::function<int64_t(ValueId)>& bytes;            // of a value's memory
  const std::function<bool(const Kernel&)>& makes_itself;  // a library that allocates its results
};

// By value: the one whose memory it takes; invalid: none. `kernels` in the order in which they run; `estimate`: bytes at each
// (PassMemory::estimate).
std::vector<ValueId> plan_buffers(const JointGraph& joint, const std::vector<Kernel>& kernels, const PassValues& values,
                                  std::vector<int64_t> estimate);

}  // namespace forerun::compile
