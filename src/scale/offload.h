// The update of a plan whose optimizer is on the host: gradients go there, the CPU makes the step, and weights come back.
//
// After ZeRO-Offload (Ren et al., 2021), as DeepSpeed has it (offload_optimizer): a GPU's share of the gradients leaves over PCIe
// while the last backward pass goes on; the CPU's step is as long as the host's memory takes for what it reads and writes, which the
// GPUs of a node share; updated weights return while it goes on. What a usual host's memory gives is an assumption of a data sheet:
// two sockets with eight channels of DDR4-3200, of machines with Hopper GPUs and later DDR5-4800, of which a step reaches half.
// Left out: delayed updates, gradients that are added up on the host in every micro-batch, parameters kept on the host.
#pragma once

#include "base/quantity.h"
#include "scale/memory_use.h"
#include "scale/network.h"

namespace forerun::scale {

// Bytes a second of a node's memory, all sockets.
double host_bandwidth(const Device& gpu);
inline constexpr double kHostReach = 0.5;  // of it, by the step
inline constexpr double kPcieReach = 0.8;  // of a direction of PCIe, by pinned copies

// Bytes that the host's memory moves for each parameter; `half_weights`: the GPU's are a copy of those that the optimizer has.
int64_t host_bytes(const StateBytes& bytes, bool half_weights);

struct OffloadedUpdate {
  Nanoseconds out;   // gradients to the host
  Nanoseconds step;  // on the CPU
  Nanoseconds back;  // weights to the GPU, beside the step
};
OffloadedUpdate offloaded_update(double parameters, const StateBytes& bytes, bool half_weights,
                                 const GpuCluster& cluster);

// What it adds behind a backward pass that hides gradients on their way.
Nanoseconds shown_of(const OffloadedUpdate& update, Nanoseconds backward);

}  // namespace forerun::scale
