// Convolutions that an older GPU computes on its fp32 lanes, where the measured one has tensor cores: cuDNN takes one of two
// algorithms, and the time is that of the faster one.
//
//   plain:    an implicit product, pixels x channels x (channels x window), in tiles
//   Winograd: of a plain 3 x 3 window, 36 products of 4 x 4 squares x channels x channels, a quarter of the multiplications, between
//             transformations of images and filters that go to memory and back
//   products: waves of tiles over the multiprocessors, each of which works on several at a time; the cheapest tile is chosen
//   time^4 = products^4 + memory^4
// The constants (DeviceScale::lane_kernels, data/cost/devices.json) are those of fp32 kernels of cuDNN 8 from Pascal to Ampere.
// Left out: FFTs, Winograd with other squares, what depthwise convolutions run (their times are carried over as they are).
#pragma once

#include <optional>

#include "cost/hybrid/device_scale.h"
#include "cost/hybrid/op_features.h"

namespace forerun::hybrid {

// Nothing where the row is another one, or runs on the units that were measured. `there`: with the rates that it sustains.
std::optional<double> lane_convolution_us(const RowWork& row, const Device& measured, const Device& there,
                                          const DeviceScale& scale);

}  // namespace forerun::hybrid
