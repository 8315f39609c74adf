// Fits how the measured GPU's corrections carry over to other GPUs (device_scale.h), to op latencies measured there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/hybrid/device_scale.h"

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
std::array<Carry, kCarriedCount> fit_carry(std::span<const CarriedOp> ops, const std::string& without = "");

// How well one kind of op is predicted on one GPU.
struct CarriedError {
  std::string gpu;
  std::string kind;
  int64_t ops = 0;
  double mre = 0;
  double ratio = 1;  // median of measured / predicted time
};
// By GPU and kind, in the order of their names.
std::vector<CarriedError> carried_errors(std::span<const CarriedOp> ops, const DeviceScale& scale);

}  // namespace forerun::hybrid
