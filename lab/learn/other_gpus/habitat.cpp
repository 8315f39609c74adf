#include "lab/learn/other_gpus/habitat.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "lab/dataset/weights_files.h"
#include "lab/learn/trainer.h"

namespace forerun::learn {
namespace {

constexpr size_t kRowsOfKind = 6000;  // on a GPU, at most
constexpr int64_t kWidth = 10;
constexpr float kLongestLog = 18;  // ln(microseconds): a minute

void add_sizes(const GpuWork& work, const Device& device, KindSamples& samples) {
  const GemmShape& product = work.product;
  const double columns[kWidth] = {static_cast<double>(product.repeats * product.batch),
                                  static_cast<double>(product.m),
                                  static_cast<double>(product.n),
                                  static_cast<double>(product.k),
                                  static_cast<double>(work.window),
                                  work.bytes,
                                  static_cast<double>(device.board_memory.value),
                                  device.memory_bandwidth,
                                  static_cast<double>(device.sm_count),
                                  device.rate(work.unit)};
  for (const double column : columns) samples.columns.push_back(static_cast<float>(std::log2(std::max(column, 1.0))));
  samples.bound.push_back(1);
  samples.waves.push_back(1);
}

KindNetworks untrained_products() {
  const std::vector<WorkKind> kinds = {WorkKind::linear, WorkKind::batched_product, WorkKind::convolution};
  return KindNetworks(kinds, NetworkSize{.columns = kWidth, .hidden = 64, .outputs = 1});
}

torch::Tensor network_us(const torch::Tensor& outputs, const KindBatch& /*batch*/) {
  return torch::exp((outputs.select(1, 0) + 6).clamp(-3, kLongestLog));
}

}  // namespace

Habitat::Habitat() : nets_(untrained_products()) {}

Result<TrainingLog> Habitat::train(const TimedWorkTable& table, const std::vector<std::string>& without,
                                   const TrainOptions& options) {
  torch::manual_seed(options.seed);
  nets_ = untrained_products();
  std::map<WorkKind, KindSamples> samples;
  for (const TimedWork* row : evenly_chosen(table, gpus_used(table, without), kRowsOfKind)) {
    if (!is_product(row->work.kind)) continue;
    KindSamples& into = samples[row->work.kind];
    add_sizes(row->work, table.devices[row->gpu], into);
    into.us.push_back(static_cast<float>(row->us));
  }
  return train_networks(nets_, samples, network_us, options);
}

std::vector<double> Habitat::predict(std::span<const OriginWork> work, const Device& origin,
                                     const Device& destination) {
  std::vector<double> us(work.size());
  for (size_t i = 0; i < work.size(); ++i) {
    const KernelLaunch launch = work[i].launch.blocks > 0 ? work[i].launch : usual_launch(work[i].work);
    us[i] = wave_scaled(work[i].us, work[i].work, launch, origin, destination);
  }
  for (const WorkKind kind : kWorkKinds) {
    if (!is_product(kind)) continue;
    KindSamples here;
    KindSamples there;
    std::vector<size_t> places;
    for (size_t i = 0; i < work.size(); ++i) {
      if (work[i].work.kind != kind) continue;
      add_sizes(work[i].work, origin, here);
      add_sizes(work[i].work, destination, there);
      places.push_back(i);
    }
    const std::vector<double> from = network_times(nets_, kind, here, network_us);
    const std::vector<double> to = network_times(nets_, kind, there, network_us);
    for (size_t i = 0; i < places.size(); ++i) us[places[i]] = work[places[i]].us * to[i] / from[i];
  }
  return us;
}

Status Habitat::save(const std::string& folder) const {
  return save_module(*nets_, (std::filesystem::path(folder) / "weights.pt").string());
}

Status Habitat::load(const std::string& folder) {
  return load_module(*nets_, (std::filesystem::path(folder) / "weights.pt").string());
}

}  // namespace forerun::learn
