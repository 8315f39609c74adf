#include "lab/learn/other_gpus/neusight.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "lab/dataset/weights_files.h"
#include "lab/learn/trainer.h"

namespace forerun::learn {
namespace {

constexpr size_t kProfiledTiles = 120;  // kept of a kind and architecture
constexpr size_t kMostRows = 4000;      // of a kind on a GPU
constexpr double kLeastUtilisation = 0.005;
constexpr double kWinogradGain = 2.25;
constexpr int64_t kColumns = 7;
constexpr const char* kTilesFile = "tiles.json";  // or compressed, with .zst behind its name
constexpr double kMicroseconds = 1e6;

double log2_of(double value) { return std::log2(std::max(value, 1e-9)); }

// The least time that the GPU's peak rates allow for.
struct Roofline {
  double compute_us = 0;
  double memory_us = 0;
  [[nodiscard]] double us() const { return std::max(compute_us, memory_us); }
};

Roofline roofline_of(const GpuWork& work, const Device& device) {
  const bool winograd = work.winograd && device.unit_or_fallback(work.unit) == Unit::fp32;
  const double rate = device.rate(work.unit) * (winograd ? kWinogradGain : 1);
  return {.compute_us = kMicroseconds * work.flops / rate,
          .memory_us = kMicroseconds * work.bytes / device.memory_bandwidth};
}

void add_row(const GpuWork& work, const Tile& tile, const Device& device, KindSamples& samples) {
  const TiledWork cut = tiled(work, tile);
  const auto sms = static_cast<double>(std::max<int64_t>(1, device.sm_count));
  const double waves = std::max(1.0, std::ceil(cut.tiles / sms));
  const Roofline roofline = roofline_of(work, device);
  const auto cache = static_cast<double>(std::max<int64_t>(1, device.l2.value));
  const double columns[kColumns] = {
      log2_of(kMicroseconds * cut.tile_flops / (device.rate(work.unit) / sms)),
      log2_of(kMicroseconds * cut.tile_bytes / (device.memory_bandwidth / sms)),
      log2_of(cut.tile_bytes * sms / cache),
      log2_of(work.bytes / cache),
      log2_of(waves),
      log2_of(cut.tiles / (waves * sms)),
      log2_of(roofline.compute_us / std::max(roofline.memory_us, 1e-9)),
  };
  for (const double column : columns) samples.columns.push_back(static_cast<float>(column));
  samples.bound.push_back(static_cast<float>(std::max(roofline.us(), 1e-4)));
  samples.waves.push_back(static_cast<float>(waves));
}

torch::Tensor times_of(const torch::Tensor& outputs, const KindBatch& batch) {
  const torch::Tensor utilisation =
      torch::sigmoid(outputs.select(1, 0)) - torch::sigmoid(outputs.select(1, 1)) / batch.waves;
  // A slope below the least utilisation too, so that a network that starts there comes out of it.
  const torch::Tensor bounded =
      torch::where(utilisation > kLeastUtilisation, utilisation,
                   kLeastUtilisation * torch::exp((utilisation - kLeastUtilisation).clamp(-1, 0)));
  return batch.bound / bounded;
}

KindNetworks untrained() {
  const std::vector<WorkKind> kinds(kWorkKinds.begin(), kWorkKinds.end());
  return KindNetworks(kinds, NetworkSize{.columns = kColumns, .hidden = 32, .outputs = 2});
}

std::vector<ProfiledTile> profiled_tiles(const TimedWorkTable& table, const std::vector<bool>& used) {
  std::vector<ProfiledTile> list;
  for (const TimedWork& row : table.rows) {
    if (!used[row.gpu] || !row.tile || !is_product(row.work.kind)) continue;
    list.push_back({.kind = row.work.kind,
                    .product = row.work.product,
                    .compute_capability = table.devices[row.gpu].compute_capability,
                    .tile = *row.tile});
  }
  return list;
}

}  // namespace

NeuSight::NeuSight() : nets_(untrained()) {}

Result<TrainingLog> NeuSight::train(const TimedWorkTable& table, const std::vector<std::string>& without,
                                    const TrainOptions& options) {
  const std::vector<bool> used = gpus_used(table, without);
  torch::manual_seed(options.seed);
  nets_ = untrained();
  tiles_ = TileTable(profiled_tiles(table, used), kProfiledTiles);
  std::map<WorkKind, KindSamples> samples;
  for (const TimedWork* row : evenly_chosen(table, used, kMostRows)) {
    const Device& device = table.devices[row->gpu];
    KindSamples& into = samples[row->work.kind];
    add_row(row->work, row->tile ? *row->tile : tiles_.tile_for(row->work, device), device, into);
    into.us.push_back(static_cast<float>(row->us));
  }
  return train_networks(nets_, samples, times_of, options);
}

std::vector<double> NeuSight::predict(std::span<const OriginWork> work, const Device& /*origin*/,
                                      const Device& destination) {
  std::vector<double> us(work.size());
  for (const WorkKind kind : kWorkKinds) {
    KindSamples samples;
    std::vector<size_t> places;
    for (size_t i = 0; i < work.size(); ++i) {
      if (work[i].work.kind != kind) continue;
      const Tile tile = is_product(kind) ? tiles_.tile_for(work[i].work, destination) : Tile();
      add_row(work[i].work, tile, destination, samples);
      places.push_back(i);
    }
    const std::vector<double> times = network_times(nets_, kind, samples, times_of);
    for (size_t i = 0; i < places.size(); ++i) us[places[i]] = times[i];
  }
  return us;
}

Status NeuSight::save(const std::string& folder) const {
  const std::string tiles = (std::filesystem::path(folder) / kTilesFile).string();
  if (Status status = write_whole_file(tiles, tiles_.to_json().dump() + "\n"); !status.ok()) return status;
  return save_module(*nets_, (std::filesystem::path(folder) / "weights.pt").string());
}

Status NeuSight::load(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kTilesFile).string();
  const auto text = bytes_of(std::filesystem::exists(path) ? path : path + ".zst");
  if (!text) return text.error();
  auto tiles = TileTable::from_json(nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false));
  if (!tiles) return tiles.error().within(folder);
  tiles_ = std::move(*tiles);
  return load_module(*nets_, (std::filesystem::path(folder) / "weights.pt").string());
}

}  // namespace forerun::learn
