// Fits how the measured GPU's corrections carry over to other GPUs (device_scale.h), to op latencies measured there.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/hybrid/device_scale.h"
#include "lab/accuracy/device_accuracy.h"

namespace forerun::hybrid {

// How the kinds of ops that models have end: "softmax in models".
inline constexpr std::string_view kInModels = " in models";

// One op on another GPU.
struct CarriedOp {
  std::string gpu;
  std::string chip;  // what boards that are one GPU under two names have in common
  std::string kind;  // as a table names it: "matrix product"
  CarriedRow row;
  double us = 0;           // measured there
  double moved_us = 0;     // at the full bandwidth
  double roofline_us = 0;  // the larger of that and the products at their unit's peak rate
  double least_us =
      0;  // the least of the table that it stands in, which is of launching alone; 0: launches are not in its time
};

// What launching adds to the latencies of a kind of op, the mean over chips: where times over bytes begin, of products a share of
// the least latency that was seen.
using Launches = std::map<std::string, double>;
Launches calibrate_launches(std::span<const CarriedOp> ops, const std::string& without = "");

// The share of their bandwidth that boards whose reach is bound get at most: the mean over GPUs of what the element-wise ops
// among these (of this kind) reach. 0 where there are none. `without`: a chip that is left out.
double calibrate_reach(std::span<const CarriedOp> ops, const std::string& kind, const Launches& launches,
                       const std::string& without = "");

// Offset and weight of each kind that has ops, the others as in `scale`, whose bound by bandwidth hides some ops. They
// minimise absolute errors of logarithms, every GPU counts the same, ops in models more, and the weight is pulled to 1.
// `without`: a chip whose ops are left out.
std::array<Carry, kCarriedCount> calibrate_carry(std::span<const CarriedOp> ops, const DeviceScale& scale,
                                                 const Launches& launches, const std::string& without = "");

// The factors of streaming kernels, which minimise the same; a search of a grid.
std::array<StreamFactors, kStreamingCount> calibrate_streaming(std::span<const CarriedOp> ops, const DeviceScale& scale,
                                                               const Launches& launches,
                                                               const std::string& without = "");

// The errors by GPU and kind, in the order of their names.
std::vector<CarriedError> carried_errors(std::span<const CarriedOp> ops, const DeviceScale& scale,
                                         const Launches& launches);

}  // namespace forerun::hybrid
