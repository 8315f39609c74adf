// What a precision means on a GPU: which arithmetic its products get there, and where it cannot be had.
//
// TF32 and bfloat16 units came with Ampere (compute capability 8.0). Without TF32 units, allowing TF32 changes nothing.
// Without bfloat16 units PyTorch refuses torch.autocast in bfloat16 or emulates it, slower than float32, and cuDNN has no
// convolutions for it: no cost model here knows how slow, so it is refused. So are products in fp8 where there are no units for them. The device file's peak rates tell which units
// there are.
#pragma once

#include "base/result.h"
#include "device/device.h"
#include "graph/training_run.h"

namespace forerun::derive {

// An Error where the device cannot train so.
Status check_precision(Precision asked, const Device& device);

// TF32 is float32 where the device has no units for it.
Precision precision_on(Precision asked, const Device& device);
TrainingSetup setup_on(TrainingSetup asked, const Device& device);

// What a user is told of it; empty where the device does as asked.
std::string precision_caveat(Precision asked, const Device& device);

}  // namespace forerun::derive
