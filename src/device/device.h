// Device: a GPU as the cost models see it, and Link: a connection between two of them.
//
// Figures are the vendor's peak figures for dense operands (no structured sparsity, float32 accumulation for half
// types), read from data/devices/ where each has its source. A rate of 0 means that the unit does not exist; `rate`
// then gives the next best unit. What is left out: clock throttling, power limits, differences between boards of one
// name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"

namespace forerun {

// The execution unit that does an op's arithmetic.
enum class Unit : uint8_t {
  fp64,
  fp32,
  fp32_matrix,
  fp16,
  tf32_tensor,
  fp16_tensor,
  bf16_tensor,
  int8_tensor,
  fp8_tensor
};
std::string_view name_of(Unit unit);

// Floating-point (or integer) operations per second of each unit; 0 where the device has no such unit.
struct PeakRates {
  double fp64 = 0;
  double fp32 = 0;
  double fp32_matrix = 0;  // matrix units at full float32 precision (AMD CDNA)
  double fp16 = 0;         // half precision outside the tensor cores
  double tf32_tensor = 0;
  double fp16_tensor = 0;
  double bf16_tensor = 0;
  double int8_tensor = 0;
  double fp8_tensor = 0;

  [[nodiscard]] double of(Unit unit) const;
};

// Where what times are predicted from was measured on such a GPU: nowhere (they are carried over from another one), in others'
// published tables that the carrying over was fitted to, or here, op by op.
enum class Measured : uint8_t { never, elsewhere, here };
std::string_view name_of(Measured measured);

inline constexpr int kHopper = 90;  // compute capability 9.0

struct Device {
  std::string name;  // as CUDA or ROCm reports it: "NVIDIA H200"
  std::vector<std::string> aliases;
  std::string vendor;
  std::string architecture;  // "hopper"; empty: not known
  Measured measured = Measured::never;
  double power_w = 0;           // that the board may draw; 0: not known
  int64_t sm_count = 0;         // streaming multiprocessors; compute units on AMD
  double clock_mhz = 0;         // boost
  Bytes memory;                 // what a program can take of it: total_memory in PyTorch, less than the board has
  Bytes board_memory;           // as the board is sold
  int compute_capability = 0;   // 90 for 9.0; 0: no CUDA device, or not known
  Bytes blas_workspace;         // that PyTorch gives cuBLAS (or hipBLAS) in each thread
  double memory_bandwidth = 0;  // bytes per second
  Bytes l2;
  PeakRates peak;
  Nanoseconds launch_gap;     // between two kernels queued one after the other on a stream
  double link_bandwidth = 0;  // NVLink or Infinity Fabric, bytes per second, sum of both directions; 0: none
  int linked_gpus = 0;        // that the link joins: 2 where it is a bridge between two boards; 0: all of a node
  double pcie_bandwidth = 0;  // bytes per second, sum of both directions
  std::string file;           // where it was read

  [[nodiscard]] bool is_nvidia() const;
  // "9.0"; empty where it is not known.
  [[nodiscard]] std::string capability_text() const;

  // The unit that really runs such arithmetic here: `unit` itself, or what the device falls back on.
  [[nodiscard]] Unit unit_or_fallback(Unit unit) const;
  [[nodiscard]] double rate(Unit unit) const { return peak.of(unit_or_fallback(unit)); }
};

// One direction of a connection in the alpha-beta model: moving b bytes takes latency + b / bandwidth.
struct Link {
  std::string name;
  std::vector<std::string> aliases;
  Nanoseconds latency;
  double bandwidth = 0;  // bytes per second, one direction
};

}  // namespace forerun
