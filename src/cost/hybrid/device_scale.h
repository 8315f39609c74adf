// DeviceScale: how what was measured on one GPU carries over to another, from data/cost/devices.json.
//
// Kernels that compute products, in their several kinds:
//   time there = analytic time there x exp(offset + weight x log(correction on the measured GPU))
// The analytic model knows rates, bandwidth and waves of both; the trees know how far the measured GPU's kernels are from
// it, and offset and weight say how much of that holds on others, by kind of kernel. They were fitted to op latencies of
// older GPUs. On a GPU of the measured one's architecture, and on later ones, everything holds. Where an older GPU computes
// with other units than the measured one (fp32 lanes in place of tensor cores; half as many lanes in a multiprocessor; half
// the load and store units for each lane; tensor cores that memory feeds more easily), its own offset and weight count. Both
// analytic times are without a cache. Of convolutions on fp32 lanes, which the measured GPU has tensor cores for, lane_convolution.h
// gives the time there.
//
// All others stream through memory, or are bound by what multiprocessors do on the way (latencies of a reduction, conversions):
//   time^4 = lanes^4 + memory^4, on the measured GPU and there
// `memory` is the time of the bytes at the bandwidth that is reached, `lanes` what then remains of the measured time. The one
// scales with the bandwidth, the other with multiprocessors x clock. So an op that gets a third of the measured GPU's bandwidth
// does not take half as long again on one with two thirds of it. Of normalisations and softmaxes on other architectures both
// have a factor, fitted.
//
// Three bounds beside it:
//   share of the peak rates that a board sustains = (x - idle) / (enough - idle), 1 at most; x = watts per fp32 rate / the
//     most of any board of the architecture, idle: what leakage and memory take of that
//   bandwidth_reach: no kernel moves its bytes faster than at this share of the bandwidth, on boards that keep the check bits
//     of their memory beside the data (inline ECC) or are older than Volta; open_reach on the others
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
#include <vector>

#include "base/result.h"
#include "cost/hybrid/op_features.h"
#include "device/catalogue.h"

namespace forerun::hybrid {

// Where `predict` looks for it, below the data folder.
inline constexpr const char* kDeviceScaleFile = "cost/devices.json";

// Of products (and, on tensor cores, convolutions) on multiprocessors as graphics boards have them: in fp32, on tensor cores.
// gradient: of convolutions.
enum class Carried : uint8_t { product, graphics_product, graphics_tensor, convolution, gradient };
constexpr size_t kCarriedCount = static_cast<size_t>(Carried::gradient) + 1;
std::string_view name_of(Carried kind);

// Kernels that stream through memory; plain: nothing was fitted.
enum class Streaming : uint8_t { plain, normalization, softmax };
constexpr size_t kStreamingCount = static_cast<size_t>(Streaming::softmax) + 1;
std::string_view name_of(Streaming kind);

struct Carry {
  double offset = 0;
  double weight = 1;
};

// Factors of the two parts of a streaming kernel's time.
struct StreamFactors {
  double lanes = 1;
  double memory = 1;
};

// What a board needs to sustain its peak rates, in parts of the most of its architecture.
struct BoardPower {
  double enough = 0;  // 0: every board sustains them
  double idle = 0;
};

// Convolutions on fp32 lanes (lane_convolution.h): the tiles of their kernels and what they cost.
struct LaneTile {
  int64_t m = 0, n = 0;
  double efficiency = 1;
};
struct LaneKernels {
  std::vector<LaneTile> tiles;  // empty: the analytic model's times are carried over
  double efficiency = 1;        // share of the peak rate that the best tile reaches
  int64_t blocks = 1;           // tiles that a multiprocessor works on at a time
  int64_t k_step = 1;           // a tile advances along k in such steps,
  double k_before = 0;          // and begins and ends as long as so much of k takes
  int64_t split_k_least = 1;    // a product with too few tiles is split along k into parts no shorter than this
  double winograd = 0;    // efficiency of the products of Winograd's algorithm beside plain ones; 0: it is not taken
  double transforms = 0;  // of the time that its transformed images take to memory and back, the share that shows
};

struct DeviceScale {
  std::array<Carry, kCarriedCount> carry = {};
  std::array<StreamFactors, kStreamingCount> streaming = {};
  BoardPower power;
  double bandwidth_reach = 0;  // 0: no bound
  double open_reach = 0;       // 0: streaming kernels are carried over as products are
  double product_share = 0;    // 0: no bound
  LaneKernels lane_kernels;
  std::map<std::string, double> most_watts_per_rate;  // by architecture, of the catalogue's boards

  void set_boards(const DeviceCatalogue& catalogue);
  // What the board sustains of its peak rates.
  [[nodiscard]] double sustained(const Device& device) const;
  // The device with the rates that it sustains.
  [[nodiscard]] Device sustaining(Device device) const;
};

// Which offset and weight count for a feature row; nothing: what was measured holds as it is. `unit`: that its products ask for.
std::optional<Carried> carried_as(Model model, Unit unit, const Device& measured, const Device& there);

// Which factors count for a feature row; nothing: it computes products.
std::optional<Streaming> streams_as(Model model, const Device& measured, const Device& there);

// The device as the analytic times that are carried over see it.
Device without_cache(Device device);

// Whether `bandwidth_reach` bounds a board.
bool is_reach_bound(const Device& device);

// A feature row as it is known: `us` by the trees, the others by the analytic model of the measured GPU.
struct MeasuredRow {
  double us = 0;
  double analytic_us = 0;
  double compute_us = 0;  // at the unit's peak rate
  double memory_us = 0;   // at the full bandwidth
  double kernels = 1;
};
// Measured over analytic time; of fp32 products, at the rate that the measured GPU sustains.
double correction_of(const MeasuredRow& row, Model model, Unit unit, const DeviceScale& scale);

// The two parts of a streaming row on another GPU, before factors: `memory_us` at the full bandwidth.
struct StreamedRow {
  Streaming kind = Streaming::plain;
  double lanes_us = 0;
  double memory_us = 0;
};
// `memory_us`: of the row there, at the full bandwidth. Nothing where the scale has no open_reach.
std::optional<StreamedRow> streamed_row(Model model, const MeasuredRow& row, double memory_us, const Device& measured,
                                        const Device& there, const DeviceScale& scale);

// A feature row's time on another GPU.
struct CarriedRow {
  double analytic_us = 0;       // there
  double correction = 1;        // on the measured GPU
  std::optional<Carried> kind;  // nothing: all of it holds
  double memory_us = 0;         // there, at the full bandwidth, where its reach is bound: else 0
  bool reach_bound = false;
  std::optional<StreamedRow> streamed = {};  // then that counts
};
double carried_us(const CarriedRow& row, const DeviceScale& scale);

Result<DeviceScale> load_device_scale(const std::filesystem::path& file);
Status save_device_scale(const DeviceScale& scale, const std::filesystem::path& file);

}  // namespace forerun::hybrid
