#include "lab/learn/baselines/habitat.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/nearest.h"
#include "lab/dataset/metrics.h"
#include "lab/dataset/weights_files.h"
#include "lab/learn/trainer.h"

namespace forerun::learn {
namespace {

constexpr int64_t kOpsAtOnce = 65536;
constexpr float kLongest = 16;  // ln(microseconds): 9 seconds

int64_t kind_of(const DataSet& data, const OpRow& row) {
  if (row.cls == OpClass::convolution) return 0;
  if (row.cls == OpClass::gemm) return data.name_of_row(row).find("bmm") == std::string::npos ? 1 : 2;
  return row.cls == OpClass::rnn ? 3 : 4;
}

}  // namespace

HabitatNetImpl::HabitatNetImpl(int64_t features, int64_t layers, int64_t hidden) {
  for (int64_t kind = 0; kind < kKinds; ++kind) {
    torch::nn::Sequential net;
    for (int64_t i = 0; i < layers; ++i) {
      net->push_back(torch::nn::Linear(i == 0 ? features : hidden, hidden));
      net->push_back(torch::nn::ReLU());
    }
    net->push_back(torch::nn::Linear(hidden, 1));
    nets_.push_back(register_module("kind" + std::to_string(kind), net));
  }
}

torch::Tensor HabitatNetImpl::forward(const torch::Tensor& features, const torch::Tensor& kinds) {
  torch::Tensor output = torch::zeros({features.size(0)}, features.options());
  for (size_t kind = 0; kind < nets_.size(); ++kind) {
    const torch::Tensor places = (kinds == static_cast<int64_t>(kind)).nonzero().squeeze(1);
    if (places.size(0) == 0) continue;
    const torch::Tensor answer = nets_[kind]->forward(features.index_select(0, places)).squeeze(1);
    output = output.index_add(0, places, answer);
  }
  return output + 2;  // ops take some microseconds
}

Settings HabitatPredictor::settings() const {
  return {{"layers", std::to_string(layers_)}, {"hidden", std::to_string(hidden_)}};
}

Status HabitatPredictor::choose(const Settings& settings) {
  layers_ = 8;
  hidden_ = 128;
  for (const auto& [key, value] : settings) {
    if (key != "layers" && key != "hidden") {
      return Error{"there is no setting '" + key + "'", "settings of habitat", did_you_mean(key, {"layers", "hidden"})};
    }
    int64_t& into = key == "layers" ? layers_ : hidden_;
    const int64_t most = key == "layers" ? 16 : 2048;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
    if (error != std::errc() || end != value.data() + value.size() || into < 1 || into > most) {
      return Error{"'" + value + "' is no value of '" + key + "'", "settings of habitat",
                   "use a number from 1 to " + std::to_string(most)};
    }
  }
  return {};
}

void HabitatPredictor::make_net() { net_ = HabitatNet(static_cast<int64_t>(encoder_.width()), layers_, hidden_); }

HabitatPredictor::Ops HabitatPredictor::ops_of(const DataSet& data, const Selection& examples) const {
  Ops ops;
  ops.place_of_row.assign(data.rows().size(), -1);
  const size_t width = encoder_.width();
  std::vector<float> features;
  std::vector<int64_t> kinds;
  std::vector<double> times;
  std::vector<double> sums;
  for (const uint32_t index : examples) {
    const Example& example = data.examples()[index];
    for (size_t i = 0; i < example.ops.size(); ++i) {
      const OpRow& row = data.rows()[example.ops[i]];
      if (!row.on_gpu) continue;
      int64_t& place = ops.place_of_row[example.ops[i]];
      if (place < 0) {
        place = static_cast<int64_t>(kinds.size());
        kinds.push_back(kind_of(data, row));
        features.resize(features.size() + width);
        const std::span<float> out = std::span(features).last(width);
        encoder_.encode(data, example, row, out);
        encoder_.scaler().apply(out);
        times.push_back(0);
        sums.push_back(0);
      }
      if (example.targets.op_us.empty()) continue;
      ++times[static_cast<size_t>(place)];
      sums[static_cast<size_t>(place)] += example.targets.op_us[i];
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) ops.us.push_back(static_cast<float>(sums[i] / std::max(times[i], 1.0)));
  const auto count = static_cast<int64_t>(kinds.size());
  ops.features = torch::from_blob(features.data(), {count, static_cast<int64_t>(width)}).clone().to(device_);
  ops.kinds = torch::tensor(kinds, torch::kInt64).to(device_);
  return ops;
}

Result<TrainingLog> HabitatPredictor::train(const DataSet& data, const TrainOptions& options) {
  if (const Status status = choose(options.settings); !status.ok()) return status.error();
  auto device = device_named(options.device);
  if (!device) return device.error();
  device_ = *device;

  const Fold fold = fold_for(data, options);
  encoder_ = FeatureEncoder({.amounts = {Amount::flops, Amount::bytes_read, Amount::bytes_written, Amount::tensors},
                             .batch = false,
                             .size = false},
                            OpVocabulary::of(data, fold.train));
  encoder_.fit_scaler(Scaler::Kind::standard, data, fold.train);
  torch::manual_seed(options.seed);
  make_net();
  net_->to(device_);
  const Ops ops = ops_of(data, fold.train);
  const Ops validation = ops_of(data, fold.validation);
  std::vector<int64_t> timed;
  for (size_t i = 0; i < ops.us.size(); ++i) {
    if (ops.us[i] > 0) timed.push_back(static_cast<int64_t>(i));
  }
  const torch::Tensor samples = torch::tensor(timed, torch::kInt64).to(device_);
  const torch::Tensor us = torch::tensor(ops.us).to(device_);
  TrainingTask task{.module = net_.get(),
                    .samples = samples.size(0),
                    .loss =
                        [&](const torch::Tensor& batch) {
                          const torch::Tensor places = samples.index_select(0, batch.to(device_));
                          const torch::Tensor wanted = us.index_select(0, places);
                          const torch::Tensor answer =
                              net_(ops.features.index_select(0, places), ops.kinds.index_select(0, places));
                          return (torch::exp(answer.clamp_max(kLongest)) / wanted - 1).abs().mean();
                        },
                    .epochs = 60,
                    .batch = 512,
                    .learning_rate = 5e-4,
                    .clip = 1,
                    .decay = true};
  if (!fold.validation.empty()) {
    task.validation_error = [&] {
      return evaluate(data, fold.validation, predict_ops(data, fold.validation, validation), Target::gpu_busy_ms)
          .all.mre;
    };
  }
  return run_training(task, options);
}

std::vector<Prediction> HabitatPredictor::predict_ops(const DataSet& data, const Selection& examples, const Ops& ops) {
  std::vector<float> us;
  for (int64_t first = 0; first < ops.kinds.size(0); first += kOpsAtOnce) {
    const int64_t count = std::min(kOpsAtOnce, ops.kinds.size(0) - first);
    const torch::Tensor part =
        torch::exp(net_(ops.features.narrow(0, first, count), ops.kinds.narrow(0, first, count)).clamp_max(kLongest))
            .to(torch::kCPU)
            .contiguous();
    us.insert(us.end(), part.data_ptr<float>(), part.data_ptr<float>() + count);
  }
  std::vector<Prediction> predictions;
  for (const uint32_t index : examples) {
    const Example& example = data.examples()[index];
    Prediction prediction;
    double busy = 0;
    for (const uint32_t row : example.ops) {
      const int64_t place = ops.place_of_row[row];
      prediction.op_us.push_back(place < 0 ? 0.0F : us[static_cast<size_t>(place)]);
      busy += prediction.op_us.back();
    }
    prediction.gpu_busy_ms = prediction.iteration_ms = busy / 1000;
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

std::vector<Prediction> HabitatPredictor::predict(const DataSet& data, const Selection& examples) {
  CHECK(!net_.is_empty(), "a predictor must be trained or loaded before it predicts");
  torch::NoGradGuard guard;
  net_->eval();
  return predict_ops(data, examples, ops_of(data, examples));
}

Status HabitatPredictor::save(const std::string& folder) const {
  CHECK(!net_.is_empty(), "a predictor must be trained before it is saved");
  const nlohmann::json described = {{"settings", settings()}, {"features", encoder_.to_json()}};
  if (Status status = write_json(folder, "predictor.json", described); !status.ok()) return status;
  return save_module(*net_, (std::filesystem::path(folder) / "weights.pt").string());
}

Status HabitatPredictor::load(const std::string& folder) {
  const auto described = read_json(folder, "predictor.json", {"settings", "features"});
  if (!described) return described.error();
  const auto settings = settings_from(*described);
  if (!settings) return settings.error().within(folder);
  if (const Status status = choose(*settings); !status.ok()) return status.error().within(folder);
  auto encoder = FeatureEncoder::from_json(described->at("features"));
  if (!encoder) return encoder.error().within(folder);
  encoder_ = std::move(*encoder);
  device_ = torch::kCPU;
  make_net();
  return load_module(*net_, (std::filesystem::path(folder) / "weights.pt").string());
}

}  // namespace forerun::learn
