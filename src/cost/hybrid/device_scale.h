// DeviceScale: how what was measured on one GPU carries over to another, from data/cost/devices.json.
//
//   time there = analytic time there x exp(offset + weight x log(correction on the measured GPU))
// The analytic model knows rates, bandwidth and waves of both; the trees know how far the measured GPU's kernels are from
// it, and offset and weight say how much of that holds on others, by kind of kernel. They were fitted to op latencies of
// older GPUs. On a GPU of the measured one's architecture, and on later ones, everything holds. Where an older GPU computes
// with other units than the measured one (fp32 lanes in place of tensor cores; half as many lanes in a multiprocessor; half
// the load and store units for each lane; tensor cores that memory feeds more easily), its own offset and weight count. Both analytic times are without a cache: kernels
// that stream through memory were seen to run at one share of the bandwidth, whatever the size of the L2.
//
// Three bounds beside it:
//   share of the peak rates that a board sustains = (x - idle) / (enough - idle), 1 at most; x = watts per fp32 rate / the
//     most of any board of the architecture, idle: what leakage and memory take of that
//   bandwidth_reach: no kernel moves its bytes faster than at this share of the bandwidth, on boards that keep the check bits
//     of their memory beside the data (inline ECC) or are older than Volta
//   product_share: of its peak fp32 rate, what the measured GPU sustains in matrix products; samples of single ops are over
//     before its clock falls
// Left out: the choice of other kernels by other library versions, clocks that fall only after seconds, operands that a large
// L2 still holds.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cost/hybrid/op_features.h"
#include "device/catalogue.h"

namespace forerun::hybrid {

// Where `predict` looks for it, below the data folder.
inline constexpr const char* kDeviceScaleFile = "cost/devices.json";

// Of products (and, on tensor cores, convolutions) on multiprocessors as graphics boards have them: in fp32, on tensor cores.
// gradient: of convolutions.
enum class Carried : uint8_t {
  product,
  graphics_product,
  graphics_tensor,
  convolution,
  gradient,
  normalization,
  softmax
};
constexpr size_t kCarriedCount = static_cast<size_t>(Carried::softmax) + 1;
std::string_view name_of(Carried kind);

struct Carry {
  double offset = 0;
  double weight = 1;
};

// What a board needs to sustain its peak rates, in parts of the most of its architecture.
struct BoardPower {
  double enough = 0;  // 0: every board sustains them
  double idle = 0;
};

struct DeviceScale {
  std::array<Carry, kCarriedCount> carry = {};
  BoardPower power;
  double bandwidth_reach = 0;                         // 0: no bound
  double product_share = 0;                           // 0: no bound
  std::map<std::string, double> most_watts_per_rate;  // by architecture, of the catalogue's boards

  void set_boards(const DeviceCatalogue& catalogue);
  // What the board sustains of its peak rates.
  [[nodiscard]] double sustained(const Device& device) const;
  // The device with the rates that it sustains.
  [[nodiscard]] Device sustaining(Device device) const;
};

// Which offset and weight count for a feature row; nothing: what was measured holds as it is. `unit`: that its products ask for.
std::optional<Carried> carried_as(Model model, Unit unit, const Device& measured, const Device& there);

// The device as the analytic times that are carried over see it.
Device without_cache(Device device);

// Whether `bandwidth_reach` bounds a board.
bool is_reach_bound(const Device& device);

// A feature row as it is known: `us` by the trees, the others by the analytic model of the measured GPU.
struct MeasuredRow {
  double us = 0;
  double analytic_us = 0;
  double compute_us = 0;  // at the unit's peak rate
};
// Measured over analytic time; of fp32 products, at the rate that the measured GPU sustains.
double correction_of(const MeasuredRow& row, Model model, Unit unit, const DeviceScale& scale);

// A feature row's time on another GPU.
struct CarriedRow {
  double analytic_us = 0;       // there
  double correction = 1;        // on the measured GPU
  std::optional<Carried> kind;  // nothing: all of it holds
  double memory_us = 0;         // there, at the full bandwidth, where its reach is bound: else 0
};
double carried_us(const CarriedRow& row, const DeviceScale& scale);

Result<DeviceScale> load_device_scale(const std::filesystem::path& file);
Status save_device_scale(const DeviceScale& scale, const std::filesystem::path& file);

}  // namespace forerun::hybrid
