// DeviceScale: how what was measured on one GPU carries over to another, from data/cost/devices.json.
//
//   time there = analytic time there x exp(offset + weight x log(correction on the measured GPU))
// The analytic model knows rates, bandwidth, caches and waves of both; the trees know how far the measured GPU's kernels
// are from it, and offset and weight say how much of that holds on others, by kind of kernel. They were fitted to op
// latencies of older GPUs. On a GPU of the measured one's architecture, and on later ones, everything holds. Where an older GPU computes with
// other units than the measured one (fp32 lanes in place of tensor cores; half as many lanes in a multiprocessor), its
// own offset and weight count. A board that may draw little power for its peak rate does not sustain its clock:
//   share of the peak = (x - idle) / (enough - idle), 1 at most; x = watts per fp32 rate / the most of any board of the
//   architecture, idle: what leakage and memory take of that
// Left out: the choice of other kernels by other library versions, clocks that fall only after seconds.
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

enum class Carried : uint8_t { product, convolution, gradient, normalization, softmax };  // gradient: of convolutions
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
  std::map<std::string, double> most_watts_per_rate;  // by architecture, of the catalogue's boards

  void set_boards(const DeviceCatalogue& catalogue);
  // What the board sustains of its peak rates.
  [[nodiscard]] double sustained(const Device& device) const;
  // The device with the rates that it sustains.
  [[nodiscard]] Device sustaining(Device device) const;
};

// Which offset and weight count for a feature row; nothing: what was measured holds as it is. `unit`: that its products ask for.
std::optional<Carried> carried_as(Model model, Unit unit, const Device& measured, const Device& there);

// A feature row's time on another GPU, given the correction (measured / analytic time) on the measured one.
double carried_us(double analytic_us, double correction, const std::optional<Carried>& kind, const DeviceScale& scale);

Result<DeviceScale> load_device_scale(const std::filesystem::path& file);
Status save_device_scale(const DeviceScale& scale, const std::filesystem::path& file);

}  // namespace forerun::hybrid
