#include "lab/learn/other_gpus/kind_networks.h"

#include <string>

#include "lab/learn/trainer.h"

namespace forerun::learn {
namespace {

constexpr double kLeastSpread = 1e-3;  // of a column that hardly varies

std::string module_name(WorkKind kind) { return "kind" + std::to_string(static_cast<int>(kind)); }

}  // namespace

KindNetworkImpl::KindNetworkImpl(int64_t columns, int64_t layers, int64_t hidden, int64_t outputs)
    : mean_(register_buffer("mean", torch::zeros({columns}))),
      spread_(register_buffer("spread", torch::ones({columns}))),
      least_(register_buffer("least", torch::zeros({columns}))),
      most_(register_buffer("most", torch::zeros({columns}))) {
  for (int64_t i = 0; i < layers; ++i) {
    layers_->push_back(torch::nn::Linear(i == 0 ? columns : hidden, hidden));
    layers_->push_back(torch::nn::ReLU());
  }
  layers_->push_back(torch::nn::Linear(hidden, outputs));
  register_module("layers", layers_);
}

torch::Tensor KindNetworkImpl::forward(const torch::Tensor& columns) {
  return layers_->forward((torch::min(torch::max(columns, least_), most_) - mean_) / spread_);
}

void KindNetworkImpl::fit_scales(const torch::Tensor& columns) {
  torch::NoGradGuard guard;
  mean_.copy_(columns.mean(0));
  least_.copy_(columns.amin(0));
  most_.copy_(columns.amax(0));
  spread_.copy_(columns.std(0, /*unbiased=*/false).clamp_min(kLeastSpread));
}

KindNetworksImpl::KindNetworksImpl(const std::vector<WorkKind>& kinds, const NetworkSize& size) {
  for (const WorkKind kind : kinds) {
    nets_.emplace(
        kind, register_module(module_name(kind), KindNetwork(size.columns, size.layers, size.hidden, size.outputs)));
  }
}

torch::Tensor as_tensor(const std::vector<float>& values, int64_t rows) {
  const int64_t width = rows > 0 ? static_cast<int64_t>(values.size()) / rows : 0;
  const torch::Tensor table = torch::tensor(values);
  return width > 1 ? table.reshape({rows, width}) : table;
}

Result<TrainingLog> train_networks(KindNetworks& nets, const std::map<WorkKind, KindSamples>& samples, TimesOf times_of,
                                   const TrainOptions& options) {
  TrainingLog all;
  for (const auto& [kind, rows] : samples) {
    if (rows.rows() == 0) continue;
    KindNetwork& net = nets->of(kind);
    const torch::Tensor columns = as_tensor(rows.columns, rows.rows());
    const torch::Tensor us = as_tensor(rows.us, rows.rows());
    const torch::Tensor bound = as_tensor(rows.bound, rows.rows());
    const torch::Tensor waves = as_tensor(rows.waves, rows.rows());
    net->fit_scales(columns);
    const auto loss = [&](const torch::Tensor& batch) {
      const torch::Tensor times =
          times_of(net->forward(columns.index_select(0, batch)),
                   {.bound = bound.index_select(0, batch), .waves = waves.index_select(0, batch)});
      // Symmetric in too fast and too slow: half and twice the time are equally far off.
      return (times.log() - us.index_select(0, batch).log()).abs().mean();
    };
    const auto log = run_training({.module = net.get(),
                                   .samples = rows.rows(),
                                   .loss = loss,
                                   .epochs = 24,
                                   .batch = 256,
                                   .learning_rate = 3e-3,
                                   .clip = 1,
                                   .decay = true},
                                  options);
    if (!log) return log.error().within(std::string(name_of(kind)));
    all.epochs.insert(all.epochs.end(), log->epochs.begin(), log->epochs.end());
    all.best_epoch = log->best_epoch;
    all.seconds += log->seconds;
    all.device = log->device;
  }
  if (all.epochs.empty()) return Error{"there is nothing to train on", "", "name GPUs that the tables have"};
  return all;
}

std::vector<double> network_times(KindNetworks& nets, WorkKind kind, const KindSamples& samples, TimesOf times_of) {
  if (samples.columns.empty()) return {};
  torch::NoGradGuard guard;
  const auto rows = static_cast<int64_t>(samples.bound.size());
  const torch::Tensor times = times_of(nets->of(kind)->forward(as_tensor(samples.columns, rows).reshape({rows, -1})),
                                       {as_tensor(samples.bound, rows), as_tensor(samples.waves, rows)})
                                  .to(torch::kFloat64)
                                  .contiguous();
  return {times.data_ptr<double>(), times.data_ptr<double>() + rows};
}

}  // namespace forerun::learn
