#include "learn/ets/ets_predictor.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "learn/ets/windows.h"
#include "learn/metrics.h"
#include "learn/trainer.h"
#include "learn/weights_json.h"

namespace forerun::learn {
namespace {

constexpr int64_t kTargets = 2;            // GPU time, gap
constexpr int64_t kWindowsAtOnce = 16384;  // when predicting

// The authors' columns for their traces; for run records what the paper lists. Which it is shows in the data: run records
// know tensor sizes.
FeatureChoice choice_for(const DataSet& data) {
  for (const OpRow& row : data.rows()) {
    if (row.amount(Amount::input_bytes) > 0) {
      return {.amounts = {Amount::flops, Amount::bytes_read, Amount::bytes_written, Amount::weight_bytes,
                          Amount::input_bytes, Amount::output_bytes, Amount::tensors},
              .setup = true};
    }
  }
  return {.amounts = {Amount::flops, Amount::bytes_read}};
}

float to_target(float us, bool log) { return log ? std::log1p(us) : us / 1000; }
float from_target(float value, bool log) {
  return log ? std::expm1(std::clamp(value, 0.0F, 20.0F)) : std::max(value, 0.0F) * 1000;
}

}  // namespace

EtsPredictor::Windows EtsPredictor::windows_of(const DataSet& data, const Selection& examples,
                                               bool with_targets) const {
  Windows windows;
  const bool log = options_.target == "log";
  const int64_t width = options_.net.width;
  std::vector<float> features;
  std::vector<float> targets;
  std::vector<int64_t> places;
  std::vector<std::pair<int64_t, int64_t>> spans;  // first op in the table, number of ops, by window
  int64_t total = 0;
  for (const uint32_t index : examples) {
    const Example& example = data.examples()[index];
    std::vector<uint32_t> positions;
    std::vector<uint32_t> rows;
    for (size_t i = 0; i < example.ops.size(); ++i) {
      if (!data.rows()[example.ops[i]].on_gpu) continue;
      positions.push_back(static_cast<uint32_t>(i));
      rows.push_back(example.ops[i]);
    }
    const std::vector<float> encoded = encoder_.encode(data, example, rows);
    features.insert(features.end(), encoded.begin(), encoded.end());
    if (with_targets) {
      for (const uint32_t i : positions) {
        targets.push_back(to_target(example.targets.op_us[i], log));
        targets.push_back(to_target(example.targets.gap_us[i], log));
      }
    }
    const auto count = static_cast<int64_t>(positions.size());
    windows.starts.push_back(window_starts(count, width, options_.stride));
    for (const int64_t start : windows.starts.back()) {
      spans.emplace_back(total + start, std::min(width, count - start));
    }
    total += count;
    windows.ops.push_back(std::move(positions));
  }
  places.reserve(spans.size() * static_cast<size_t>(width));
  for (const auto& [first, count] : spans) {
    for (int64_t i = 0; i < width; ++i) places.push_back(i < count ? first + i : total);
  }
  features.resize(features.size() + encoder_.width());
  const auto columns = static_cast<int64_t>(encoder_.width());
  windows.features = torch::from_blob(features.data(), {total + 1, columns}).clone().to(device_);
  if (with_targets) {
    targets.resize(targets.size() + kTargets);
    windows.targets = torch::from_blob(targets.data(), {total + 1, kTargets}).clone().to(device_);
  }
  windows.places =
      torch::from_blob(places.data(), {static_cast<int64_t>(spans.size()), width}, torch::kInt64).clone().to(device_);
  if (options_.net.cell == EtsCell::gcn) add_adjacency(data, examples, windows);
  return windows;
}

// Ops of a window are linked where one reads what another wrote; where no edges are known, each to the next.
void EtsPredictor::add_adjacency(const DataSet& data, const Selection& examples, Windows& windows) const {
  const int64_t width = options_.net.width;
  torch::Tensor adjacency = torch::zeros({windows.places.size(0), width, width});
  auto linked = adjacency.accessor<float, 3>();
  int64_t window = 0;
  for (size_t e = 0; e < examples.size(); ++e) {
    const Example& example = data.examples()[examples[e]];
    const auto& ops = windows.ops[e];
    std::vector<int64_t> place(example.ops.size(), -1);  // of an op among those with kernels
    for (size_t i = 0; i < ops.size(); ++i) place[ops[i]] = static_cast<int64_t>(i);
    std::vector<std::pair<int64_t, int64_t>> links;
    for (const DataEdge& edge : example.edges) {
      if (place[edge.source] >= 0 && place[edge.target] >= 0)
        links.emplace_back(place[edge.source], place[edge.target]);
    }
    if (example.edges.empty()) {
      for (size_t i = 1; i < ops.size(); ++i) links.emplace_back(i - 1, i);
    }
    std::sort(links.begin(), links.end());
    for (const int64_t start : windows.starts[e]) {
      auto link = std::lower_bound(links.begin(), links.end(), std::pair<int64_t, int64_t>(start, 0));
      for (; link != links.end() && link->first < start + width; ++link) {
        if (link->second >= start + width) continue;
        linked[window][link->first - start][link->second - start] = 1;
        linked[window][link->second - start][link->first - start] = 1;
      }
      ++window;
    }
  }
  windows.adjacency = adjacency.to(device_);
}

torch::Tensor EtsPredictor::forward(const Windows& windows, const torch::Tensor& batch) {
  const torch::Tensor places = windows.places.index_select(0, batch);
  const int64_t width = options_.net.width;
  const int64_t padding = windows.features.size(0) - 1;
  const torch::Tensor input =
      windows.features.index_select(0, places.view(-1)).view({-1, width, windows.features.size(1)});
  const torch::Tensor present = (places != padding).to(torch::kFloat32);
  const torch::Tensor adjacency =
      windows.adjacency.defined() ? windows.adjacency.index_select(0, batch) : torch::Tensor();
  return net_(input, present, adjacency);
}

torch::Tensor EtsPredictor::loss_of(const Windows& windows, const torch::Tensor& batch) {
  const torch::Tensor on_device = batch.to(device_);
  const torch::Tensor output = forward(windows, on_device);
  const torch::Tensor places = windows.places.index_select(0, on_device).view(-1);
  const torch::Tensor target = windows.targets.index_select(0, places).view_as(output);
  // Padding counts: its features and its times are 0, and the network learns so.
  if (options_.loss == "mse") return torch::mse_loss(output, target);
  if (options_.loss == "smooth_l1") return torch::smooth_l1_loss(output, target, at::Reduction::Mean, 0.5);
  if (options_.loss == "huber") return torch::huber_loss(output, target);
  return torch::l1_loss(output, target);
}

Result<TrainingLog> EtsPredictor::train(const DataSet& data, const TrainOptions& options) {
  auto chosen = EtsOptions::from_settings(options.settings, defaults_);
  if (!chosen) return chosen.error();
  auto device = device_named(options.device);
  if (!device) return device.error();
  options_ = *chosen;
  device_ = *device;

  Fold fold = split_for_validation(data, options.validation, options.seed);
  const auto untimed = [&](uint32_t i) {
    const Targets& targets = data.examples()[i].targets;
    return targets.op_us.empty() || targets.gap_us.empty();
  };
  std::erase_if(fold.train, untimed);
  encoder_ = FeatureEncoder(choice_for(data), OpVocabulary::of(data, fold.train));
  encoder_.fit_scaler(Scaler::Kind::standard, data, fold.train);
  options_.net.features = static_cast<int64_t>(encoder_.width());
  options_.net.hidden = options_.hidden > 0 ? options_.hidden : options_.net.features;

  torch::manual_seed(options.seed);
  net_ = EtsNet(options_.net);
  net_->to(device_);
  const Windows windows = windows_of(data, fold.train, true);
  const Windows validation = windows_of(data, fold.validation, false);

  TrainingTask task{.module = net_.get(),
                    .samples = windows.places.size(0),
                    .loss = [&](const torch::Tensor& batch) { return loss_of(windows, batch); },
                    .epochs = 100,
                    .batch = 128,
                    .learning_rate = 1e-3,
                    .clip = 1,
                    .decay = true};
  if (!fold.validation.empty()) {
    task.validation_error = [&] {
      const auto predictions = predict_windows(data, fold.validation, validation);
      return evaluate(data, fold.validation, predictions, Target::iteration_ms).all.mre;
    };
  }
  return run_training(task, options);
}

std::vector<Prediction> EtsPredictor::predict(const DataSet& data, const Selection& examples) {
  CHECK(!net_.is_empty(), "ETS must be trained or loaded before it predicts");
  torch::NoGradGuard guard;
  net_->eval();
  return predict_windows(data, examples, windows_of(data, examples, false));
}

std::vector<Prediction> EtsPredictor::predict_windows(const DataSet& data, const Selection& examples,
                                                      const Windows& windows) {
  const bool log = options_.target == "log";
  std::vector<torch::Tensor> parts;
  const int64_t count = windows.places.size(0);
  for (int64_t first = 0; first < count; first += kWindowsAtOnce) {
    const int64_t last = std::min(first + kWindowsAtOnce, count);
    parts.push_back(forward(windows, torch::arange(first, last, torch::kInt64).to(device_)).to(torch::kCPU));
  }
  const torch::Tensor all = parts.empty() ? torch::zeros({0}) : torch::cat(parts).contiguous();
  const float* value = all.data_ptr<float>();
  const int64_t width = options_.net.width;
  std::vector<Prediction> predictions;
  for (size_t e = 0; e < examples.size(); ++e) {
    const auto& ops = windows.ops[e];
    const size_t size = windows.starts[e].size() * static_cast<size_t>(width * kTargets);
    const std::vector<float> means =
        average_windows({value, size}, windows.starts[e], static_cast<int64_t>(ops.size()), width, kTargets);
    value += size;
    Prediction prediction;
    const size_t op_count = data.examples()[examples[e]].ops.size();
    prediction.op_us.resize(op_count);
    prediction.gap_us.resize(op_count);
    double busy = 0;
    double idle = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      busy += prediction.op_us[ops[i]] = from_target(means[2 * i], log);
      idle += prediction.gap_us[ops[i]] = from_target(means[2 * i + 1], log);
    }
    prediction.gpu_busy_ms = busy / 1000;
    prediction.iteration_ms = (busy + idle) / 1000;
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

Status EtsPredictor::save(const std::string& folder) const {
  CHECK(!net_.is_empty(), "ETS must be trained before it is saved");
  const nlohmann::json described = {{"settings", options_.to_settings()}, {"features", encoder_.to_json()}};
  if (Status status = write_json(folder, "predictor.json", described); !status.ok()) return status;
  return save_module(*net_, (std::filesystem::path(folder) / "weights.pt").string());
}

Status EtsPredictor::load(const std::string& folder) {
  const auto described = read_json(folder, "predictor.json", {"settings", "features"});
  if (!described) return described.error();
  auto settings = settings_from(*described);
  if (!settings) return settings.error().within(folder);
  auto options = EtsOptions::from_settings(*settings, defaults_);
  if (!options) return options.error().within(folder);
  auto encoder = FeatureEncoder::from_json(described->at("features"));
  if (!encoder) return encoder.error().within(folder);
  options_ = *options;
  encoder_ = std::move(*encoder);
  options_.net.features = static_cast<int64_t>(encoder_.width());
  options_.net.hidden = options_.hidden > 0 ? options_.hidden : options_.net.features;
  net_ = EtsNet(options_.net);
  device_ = torch::kCPU;
  return load_module(*net_, (std::filesystem::path(folder) / "weights.pt").string());
}

}  // namespace forerun::learn
