// Wave scaling, after Habitat (Yu et al., USENIX ATC 2021): the time of a kernel on one GPU from its time on another, where both
// run the same kernel.
//
//   T_d = T_o x waves_d / waves_o x (D_o/D_d x W_d/W_o)^g x (C_o/C_d)^(1-g)
// with memory bandwidth D, clock C, and W the thread blocks that run at once: multiprocessors x blocks of each. How much of the
// kernel is bound by memory, g, follows from its arithmetic intensity I and the destination's ridge point R: 1 - I/2R up to the
// ridge, R/2I beyond it. A kernel of less than a wave on both scales with the clock alone. Registers and shared memory are not
// known here, so that threads alone bound how many blocks a multiprocessor holds.
#pragma once

#include "device/device.h"
#include "lab/dataset/other_gpus/gpu_work.h"

namespace forerun::learn {

struct KernelLaunch {
  double blocks = 0;
  int64_t threads = kThreadsOfBlock;  // of a block
};
// As PyTorch launches what is no product.
KernelLaunch usual_launch(const GpuWork& work);

// Blocks of so many threads that run on the device at once.
double wave_size(const Device& device, int64_t threads);

// Share of the kernel's time that bandwidth decides, 0 to 1.
double memory_boundness(const GpuWork& work, const Device& destination);

double wave_scaled(double us, const GpuWork& work, const KernelLaunch& launch, const Device& origin,
                   const Device& destination);

}  // namespace forerun::learn
