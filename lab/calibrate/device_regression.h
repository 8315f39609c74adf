// Fits how the measured GPU's corrections carry over to other GPUs (device_scale.h), to op latencies measured there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/hybrid/device_scale.h"
#include "lab/accuracy/device_accuracy.h"

namespace forerun::hybrid {

// One op on another GPU.
struct CarriedOp {
  std::string gpu;
  std::string kind;  // as a table names it: "matrix product"
  std::optional<Carried> carried;
  double analytic_us = 0;  // there
  double correction = 1;   // measured / analytic time on the measured GPU, as the trees say
  double us = 0;           // measured there
};

double predicted_us(const CarriedOp& op, const DeviceScale& scale);

// Offset and weight of each kind that has ops. They minimise absolute errors of logarithms, every GPU counts the same, and
// the weight is pulled to 1. `without`: a GPU whose ops are left out.
std::array<Carry, kCarriedCount> calibrate_carry(std::span<const CarriedOp> ops, const std::string& without = "");

// The errors by GPU and kind, in the order of their names.
std::vector<CarriedError> carried_errors(std::span<const CarriedOp> ops, const DeviceScale& scale);

}  // namespace forerun::hybrid
