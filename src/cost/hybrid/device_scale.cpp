#include "cost/hybrid/device_scale.h"

#include <algorithm>
#include <cmath>

#include "base/json_file.h"
#include "base/json_writer.h"
#include "base/line_writer.h"

namespace forerun::hybrid {
namespace {

constexpr double kLeastSustained = 0.2;  // of the peak rates: boards are not built to do less
constexpr double kPlainMemory = 0.95;    // of a board's memory that programs can take: less where check bits lie in it
constexpr int kVolta = 70;               // compute capability 7.0
constexpr double kLeastLanes = 0.3;      // of a streaming row's time: bandwidth never hides all that multiprocessors do
constexpr double kKernelFloorUs = 1.4;   // of a kernel that does next to nothing, on any GPU

double fourth_root(double value) { return std::sqrt(std::sqrt(value)); }
double fourth_power(double value) { return value * value * value * value; }

// Lanes of a multiprocessor that compute in fp32, from the peak rate; a lane multiplies and adds in a cycle.
double lanes(const Device& device) {
  return device.peak.fp32 / (2e6 * static_cast<double>(std::max<int64_t>(device.sm_count, 1)) * device.clock_mhz);
}

// Half as many load and store units for each lane as the data-centre chips of their time.
bool is_graphics_chip(const Device& device) {
  return device.compute_capability == 86 || device.compute_capability == 89;
}

bool is_fp32(Unit unit) { return unit == Unit::fp32 || unit == Unit::fp32_matrix; }

// Nothing of other architectures' kernels was fitted to hold there.
bool is_kin_or_later(const Device& measured, const Device& there) {
  if (!there.architecture.empty() && there.architecture == measured.architecture) return true;
  return measured.compute_capability > 0 && there.compute_capability > measured.compute_capability;
}

// What the multiprocessors can do in a second, in no unit.
double issue_rate(const Device& device) {
  return static_cast<double>(std::max<int64_t>(device.sm_count, 1)) * std::max(device.clock_mhz, 1.0);
}

double watts_per_rate(const Device& device) { return device.power_w / device.peak.fp32; }

}  // namespace

std::string_view name_of(Carried kind) {
  constexpr std::array<std::string_view, kCarriedCount> kNames = {"product", "graphics_product", "graphics_tensor",
                                                                  "convolution", "gradient"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(Streaming kind) {
  constexpr std::array<std::string_view, kStreamingCount> kNames = {"plain", "normalization", "softmax"};
  return kNames[static_cast<size_t>(kind)];
}

void DeviceScale::set_boards(const DeviceCatalogue& catalogue) {
  most_watts_per_rate.clear();
  for (const Device& device : catalogue.devices()) {
    if (device.architecture.empty() || device.power_w <= 0) continue;
    double& most = most_watts_per_rate[device.architecture];
    most = std::max(most, watts_per_rate(device));
  }
}

double DeviceScale::sustained(const Device& device) const {
  const auto most = most_watts_per_rate.find(device.architecture);
  if (power.enough <= 0 || device.power_w <= 0 || most == most_watts_per_rate.end()) return 1;
  const double share = watts_per_rate(device) / most->second;
  return std::clamp((share - power.idle) / (power.enough - power.idle), kLeastSustained, 1.0);
}

Device DeviceScale::sustaining(Device device) const {
  const double share = sustained(device);
  for (double* rate :
       {&device.peak.fp64, &device.peak.fp32, &device.peak.fp32_matrix, &device.peak.fp16, &device.peak.tf32_tensor,
        &device.peak.fp16_tensor, &device.peak.bf16_tensor, &device.peak.int8_tensor, &device.peak.fp8_tensor}) {
    *rate *= share;
  }
  return device;
}

std::optional<Carried> carried_as(Model model, Unit unit, const Device& measured, const Device& there) {
  if (is_kin_or_later(measured, there)) return std::nullopt;
  const std::optional<Carried> on_tensor_cores =
      is_graphics_chip(there) ? std::optional(Carried::graphics_tensor) : std::nullopt;
  switch (model) {
    case Model::gemm:
      if (!is_fp32(there.unit_or_fallback(unit))) return on_tensor_cores;
      if (lanes(there) < 0.75 * lanes(measured)) return Carried::product;
      if (is_graphics_chip(there)) return Carried::graphics_product;
      return std::nullopt;
    case Model::convolution:
    case Model::data_gradient:
    case Model::weight_gradient:
      if (there.unit_or_fallback(unit) == measured.unit_or_fallback(unit)) return on_tensor_cores;
      return model == Model::convolution ? Carried::convolution : Carried::gradient;
    default: return std::nullopt;
  }
}

std::optional<Streaming> streams_as(Model model, const Device& measured, const Device& there) {
  const bool fitted = !is_kin_or_later(measured, there);
  switch (model) {
    case Model::gemm:
    case Model::convolution:
    case Model::data_gradient:
    case Model::weight_gradient:
    case Model::attention:
    case Model::rnn: return std::nullopt;
    case Model::normalization: return fitted ? Streaming::normalization : Streaming::plain;
    case Model::softmax: return fitted ? Streaming::softmax : Streaming::plain;
    default: return Streaming::plain;
  }
}

Device without_cache(Device device) {
  device.l2 = Bytes(0);
  return device;
}

bool is_reach_bound(const Device& device) {
  const bool inline_ecc =
      static_cast<double>(device.memory.value) < kPlainMemory * static_cast<double>(device.board_memory.value);
  return inline_ecc || (device.compute_capability > 0 && device.compute_capability < kVolta);
}

double correction_of(const MeasuredRow& row, Model model, Unit unit, const DeviceScale& scale) {
  double us = row.us;
  if (model == Model::gemm && is_fp32(unit) && scale.product_share > 0) {
    us = std::max(us, row.compute_us / scale.product_share);
  }
  return us / row.analytic_us;
}

std::optional<StreamedRow> streamed_row(Model model, const MeasuredRow& row, double memory_us, const Device& measured,
                                        const Device& there, const DeviceScale& scale) {
  const auto kind = streams_as(model, measured, there);
  if (!kind || scale.open_reach <= 0) return std::nullopt;
  const double streamed = std::min(row.us, row.memory_us / scale.open_reach);  // of the measured time
  const double lanes = std::max(kLeastLanes * row.us, fourth_root(fourth_power(row.us) - fourth_power(streamed)));
  const double floor = std::min(lanes, kKernelFloorUs * row.kernels);
  // What got more of the measured GPU's bandwidth than others do, gets more here.
  const double reached = row.memory_us > 0 ? streamed * scale.open_reach / row.memory_us : 1;
  return StreamedRow{.kind = *kind,
                     .lanes_us = floor + (lanes - floor) * issue_rate(measured) / issue_rate(there),
                     .memory_us = memory_us * reached};
}

double carried_us(const CarriedRow& row, const DeviceScale& scale) {
  if (row.streamed) {
    const StreamFactors& factors = scale.streaming[static_cast<size_t>(row.streamed->kind)];
    const double reach = row.reach_bound && scale.bandwidth_reach > 0 ? scale.bandwidth_reach : scale.open_reach;
    return fourth_root(fourth_power(factors.lanes * row.streamed->lanes_us) +
                       fourth_power(factors.memory * row.streamed->memory_us / reach));
  }
  const Carry carry = row.kind ? scale.carry[static_cast<size_t>(*row.kind)] : Carry{};
  const double us = row.analytic_us * std::exp(carry.offset) * std::pow(row.correction, carry.weight);
  return scale.bandwidth_reach > 0 ? std::max(us, row.memory_us / scale.bandwidth_reach) : us;
}

namespace {

LaneKernels read_lane_kernels(JsonObject entry) {
  LaneKernels kernels;
  for (JsonObject& tile : entry.objects("tiles")) {
    kernels.tiles.push_back({tile.integer("m"), tile.integer("n"), tile.number("efficiency")});
  }
  kernels.efficiency = entry.number("efficiency");
  kernels.blocks = entry.integer("blocks");
  kernels.k_step = entry.integer("k_step");
  kernels.k_before = entry.number("k_before", Sign::not_negative);
  kernels.split_k_least = entry.integer("split_k_least");
  kernels.winograd = entry.number("winograd", Sign::not_negative);
  kernels.transforms = entry.number("transforms", Sign::not_negative);
  return kernels;
}

void write_lane_kernels(JsonWriter& json, const LaneKernels& kernels) {
  json.begin_object().key("tiles").begin_array();
  for (const LaneTile& tile : kernels.tiles) {
    json.begin_object().field("m", tile.m).field("n", tile.n).field("efficiency", tile.efficiency).end_object();
  }
  json.end_array()
      .field("efficiency", kernels.efficiency)
      .field("blocks", kernels.blocks)
      .field("k_step", kernels.k_step)
      .field("k_before", kernels.k_before)
      .field("split_k_least", kernels.split_k_least)
      .field("winograd", kernels.winograd)
      .field("transforms", kernels.transforms)
      .end_object();
}

}  // namespace

Result<DeviceScale> load_device_scale(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != "devices/4") file->fail("format", "unknown format \"" + format + "\"", "known is devices/4");
  DeviceScale scale;
  JsonObject power = file->object("power");
  scale.power = {power.number("enough", Sign::not_negative), power.number("idle", Sign::not_negative)};
  if (file->status().ok() && scale.power.enough > 0 && scale.power.idle >= scale.power.enough) {
    power.fail("idle", "must be below enough");
  }
  scale.bandwidth_reach = file->number("bandwidth_reach", Sign::not_negative);
  scale.open_reach = file->number("open_reach", Sign::not_negative);
  scale.product_share = file->number("product_share", Sign::not_negative);
  scale.lane_kernels = read_lane_kernels(file->object("lane_kernels"));
  JsonObject streaming = file->object("streaming");
  for (size_t i = 1; i < kStreamingCount; ++i) {  // plain ones have no factors
    JsonObject entry = streaming.object(std::string(name_of(static_cast<Streaming>(i))));
    scale.streaming[i] = {entry.number("lanes"), entry.number("memory")};
  }
  JsonObject carry = file->object("carry");
  for (size_t i = 0; i < kCarriedCount; ++i) {
    JsonObject entry = carry.object(std::string(name_of(static_cast<Carried>(i))));
    scale.carry[i] = {std::log(entry.number("factor")), entry.number("weight", Sign::not_negative)};
  }
  if (!file->status().ok()) return file->status().error();
  return scale;
}

Status save_device_scale(const DeviceScale& scale, const std::filesystem::path& path) {
  const auto rounded = [](double value) { return std::round(1000 * value) / 1000; };
  JsonWriter json(2);
  json.begin_object().field("format", "devices/4").key("power").begin_object();
  json.field("enough", scale.power.enough).field("idle", scale.power.idle).end_object();
  json.field("bandwidth_reach", rounded(scale.bandwidth_reach)).field("open_reach", rounded(scale.open_reach));
  json.field("product_share", rounded(scale.product_share)).key("lane_kernels");
  write_lane_kernels(json, scale.lane_kernels);
  json.key("streaming").begin_object();
  for (size_t i = 1; i < kStreamingCount; ++i) {
    json.key(name_of(static_cast<Streaming>(i))).begin_object();
    json.field("lanes", rounded(scale.streaming[i].lanes));
    json.field("memory", rounded(scale.streaming[i].memory)).end_object();
  }
  json.end_object().key("carry").begin_object();
  for (size_t i = 0; i < kCarriedCount; ++i) {
    json.key(name_of(static_cast<Carried>(i))).begin_object();
    json.field("factor", rounded(std::exp(scale.carry[i].offset)));
    json.field("weight", rounded(scale.carry[i].weight)).end_object();
  }
  json.end_object().end_object();
  Result<LineWriter> writer = LineWriter::create(path.string(), {.overwrite = true});
  if (!writer) return writer.error();
  if (Status written = writer->write(json.take()); !written.ok()) return written;
  return writer->finish();
}

}  // namespace forerun::hybrid
