// How much of the GPU's time each kernel of a trace stands for, where kernels of several streams run side by side.
//
// Kernels that run at once share the GPU: each gets an equal part of every moment. The parts of all kernels add up to the
// time that the GPU was computing at all, and a simulation in which kernels overlap more than they did cannot be believed
// below that. Left out: whether kernels that did not overlap for want of work could have; communication and copies, which
// run beside computation.
#pragma once

#include <vector>

#include "ingest/trace/trace.h"

namespace forerun::whatif {

// By event: the kernel's part over its duration, from 0 to 1; 1 where it ran alone, 0 for all that is no computation.
std::vector<float> device_shares(const Trace& trace);

}  // namespace forerun::whatif
