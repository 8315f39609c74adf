// AnalyticConstants: the engineering constants of the analytic cost model, read from data/cost/analytic.json.
//
// {"format": "analytic/1", "classes": {"gemm": {"compute": 0.7, "memory": 0.8, ...}, ...}, "ops": {"gelu": {...}}, ...}
// Every op class has an entry; "ops" refines single ops by base name and inherits what it leaves out from their class.
// Depthwise convolutions are looked up as "depthwise_convolution" and "depthwise_convolution_backward".
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "derive/op_class.h"
#include "device/device.h"

namespace forerun {

struct ClassConstants {
  double compute = 1;        // share of the unit's peak rate that a full wave of large tiles reaches
  double memory = 1;         // share of the memory bandwidth
  double passes = 1;         // times the operands' bytes are really moved
  double kernels = 1;        // kernels of one op, before what the op's shape adds
  double channels_last = 1;  // speed in channels-last layout relative to the default layout
  Nanoseconds fixed;         // duration that does not shrink with the operands, beside the floor of each kernel
};

// The piece of a product that one multiprocessor computes at a time, and its speed relative to the best tile.
struct Tile {
  int64_t m = 0;
  int64_t n = 0;
  double efficiency = 1;
};

struct AnalyticConstants {
  Nanoseconds kernel_floor;  // duration of a kernel that does next to nothing
  double cache_share = 0;    // share of the L2 cache that holds what an op works on
  double cache_speedup = 1;  // bandwidth of cached over uncached accesses
  std::vector<Tile> tiles;
  int64_t k_step = 1;          // a tile walks along k in steps of this length,
  Nanoseconds k_step_latency;  // each taking at least so long
  int64_t split_k_least = 1;   // a product may be split along k into parts of at least this length
  double unaligned = 1;        // speed of tensor-core products whose rows are not multiples of 16 bytes
  double layout_passes = 0;    // layout copies around NCHW convolutions on tensor cores, in operand bytes
  double layout_kernels = 0;
  int64_t persistent_width = 0;  // recurrent layers up to this width run in one kernel that keeps the weights on chip
  Nanoseconds persistent_step;   // a step of such a layer,
  Nanoseconds step;              // and of any other, beside its product
  int64_t foreach_chunk = 1;     // elements of one block of a foreach kernel,
  int64_t foreach_blocks = 1;    // blocks and
  int64_t foreach_tensors = 1;   // tensors of one kernel at most

  std::array<double, 9> unit_efficiency{};  // by Unit: what library kernels reach of the peak at best
  std::array<ClassConstants, kOpClassCount> classes;

  [[nodiscard]] const ClassConstants& of(OpClass cls, std::string_view base) const;

  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, ClassConstants, NameHash, std::equal_to<>> ops;
};

Result<AnalyticConstants> load_analytic_constants(const std::filesystem::path& file);

}  // namespace forerun
