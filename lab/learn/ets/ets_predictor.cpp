#include "lab/learn/ets/ets_predictor.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "lab/dataset/metrics.h"
#include "lab/dataset/weights_files.h"
#include "lab/dataset/windows.h"
#include "lab/learn/ets/lane_times.h"
#include "lab/learn/ets/op_scales.h"
#include "lab/learn/ets/shared_form.h"
#include "lab/learn/meta_learner.h"

namespace forerun::learn {
namespace {

constexpr int64_t kTargets = 2;            // GPU time, gap
constexpr int64_t kWindowsAtOnce = 16384;  // when predicting
constexpr double kShortestMs = 1;          // of iterations that are told apart when balanced
constexpr double kLeastRatio = -10;        // logarithms of ratios
constexpr double kMostRatio = 6;
constexpr double kLeastMs = 1e-3;        // below, times are alike to the loss of logarithms
constexpr float kPaddingScaleMs = 1e-6;  // padding takes no time

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

// The windows of each trace, by GPU: the tasks of meta-learning, in alphabetical order.
std::vector<MetaTask> tasks_of(const DataSet& data, const Selection& examples,
                               const std::vector<std::vector<int64_t>>& starts) {
  std::map<std::string, MetaTask> tasks;
  int64_t first = 0;
  for (size_t e = 0; e < examples.size(); ++e) {
    const std::string& gpu = data.examples()[examples[e]].device;
    const auto count = static_cast<int64_t>(starts[e].size());
    MetaTask& task = tasks[gpu];
    task.name = gpu;
    task.groups.push_back({.first = first, .count = count});
    first += count;
  }
  std::vector<MetaTask> list;
  for (auto& [gpu, task] : tasks) list.push_back(std::move(task));
  return list;
}

// An Error where some of these examples call their ops by the authors' numbers and others by their names.
Status check_alike(const DataSet& data, const Selection& examples) {
  const Example* traced = nullptr;
  const Example* recorded = nullptr;
  for (const uint32_t i : examples) {
    const Example& example = data.examples()[i];
    if (example.ops.empty()) continue;
    (is_traced_name(data.name_of_row(data.rows()[example.ops.front()])) ? traced : recorded) = &example;
  }
  if (traced == nullptr || recorded == nullptr) return {};
  return Error{fmt::format("ops of {} are told by other features than those of {}", traced->device, recorded->device),
               traced->id, "learn from what both tell with --set features=shared"};
}

// The first network's weights are weights.pt, the others' weights.2.pt and so on.
std::string weights_file(const std::string& folder, size_t net) {
  const std::string name = net == 0 ? "weights.pt" : fmt::format("weights.{}.pt", net + 1);
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace

int64_t EtsPredictor::columns() const {
  const size_t told = lanes() ? kLaneColumns : ratio() ? kScaleColumns : 0;
  return static_cast<int64_t>(encoder_.width() + told);
}

void EtsPredictor::add_features(const DataSet& data, const Example& example, std::span<const uint32_t> places,
                                std::vector<float>& features, std::vector<float>& scales,
                                std::vector<float>& offsets) const {
  std::vector<uint32_t> rows;
  for (const uint32_t place : places) rows.push_back(example.ops[place]);
  const std::vector<float> encoded = encoder_.encode(data, example, rows);
  if (!relative()) {
    features.insert(features.end(), encoded.begin(), encoded.end());
    return;
  }
  const auto width = static_cast<std::ptrdiff_t>(encoder_.width());
  auto row = encoded.begin();
  if (lanes()) {
    for (const LaneScale& scale : lane_scales(data, example, places, devices_.find(example.device))) {
      features.insert(features.end(), row, row + width);
      row += width;
      add_lane_columns(scale, example, features);
      scales.push_back(static_cast<float>(scale.gpu_us / 1000));
      scales.push_back(static_cast<float>(scale.host_us / 1000));
      offsets.insert(offsets.end(), 2, 0.0F);
    }
    return;
  }
  const std::vector<OpScale> of_ops =
      shared() ? shared_scales(data, example, places, devices_.find(example.device)) : scales_of(data, example, places);
  for (const OpScale& scale : of_ops) {
    features.insert(features.end(), row, row + width);
    row += width;
    add_scale_columns(scale, features);
    scales.push_back(static_cast<float>(scale.time_us / 1000));
    scales.push_back(static_cast<float>(scale.gap_us / 1000));
    offsets.push_back(0);
    offsets.push_back(static_cast<float>(scale.untraced_us / 1000));
  }
}

EtsPredictor::Windows EtsPredictor::windows_of(const DataSet& data, const Selection& examples,
                                               bool with_targets) const {
  Windows windows;
  const bool log = options_.target == "log";
  const int64_t width = options_.net.width;
  std::vector<float> features;
  std::vector<float> scales;
  std::vector<float> offsets;
  std::vector<float> targets;
  std::vector<int64_t> places;
  std::vector<std::pair<int64_t, int64_t>> spans;  // first op in the table, number of ops, by window
  int64_t total = 0;
  for (const uint32_t index : examples) {
    const Example& example = data.examples()[index];
    std::vector<uint32_t> positions;
    for (size_t i = 0; i < example.ops.size(); ++i) {
      if (data.rows()[example.ops[i]].on_gpu) positions.push_back(static_cast<uint32_t>(i));
    }
    add_features(data, example, positions, features, scales, offsets);
    if (with_targets) {
      const std::vector<float> host = lanes() ? lane_host_us(example, positions) : std::vector<float>();
      for (size_t i = 0; i < positions.size(); ++i) {
        targets.push_back(to_target(example.targets.op_us[positions[i]], log));
        targets.push_back(to_target(lanes() ? host[i] : example.targets.gap_us[positions[i]], log));
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
  features.resize(features.size() + static_cast<size_t>(columns()));
  windows.features = torch::from_blob(features.data(), {total + 1, columns()}).clone().to(device_);
  if (relative()) {
    scales.resize(scales.size() + kTargets, kPaddingScaleMs);
    offsets.resize(offsets.size() + kTargets);
    windows.scales = torch::from_blob(scales.data(), {total + 1, kTargets}).clone().to(device_);
    windows.offsets = torch::from_blob(offsets.data(), {total + 1, kTargets}).clone().to(device_);
  }
  if (with_targets) {
    targets.resize(targets.size() + kTargets);
    windows.targets = torch::from_blob(targets.data(), {total + 1, kTargets}).clone().to(device_);
  }
  windows.places =
      torch::from_blob(places.data(), {static_cast<int64_t>(spans.size()), width}, torch::kInt64).clone().to(device_);
  if (options_.net.cell == EtsCell::gcn) add_adjacency(data, examples, windows);
  if (!with_targets) add_distinct(windows, std::move(places));
  if (with_targets && (options_.balance > 0 || relative())) add_weights(data, examples, windows);
  return windows;
}

// What the network and `forward` are given for an op is a row of three tables.
void EtsPredictor::add_distinct(Windows& windows, std::vector<int64_t> places) const {
  const int64_t count = windows.places.size(0);
  windows.distinct = windows.alike = torch::arange(count, torch::kInt64);
  if (windows.adjacency.defined() || count == 0) return;
  const torch::Tensor told =
      relative() ? torch::cat({windows.features, windows.scales, windows.offsets}, 1) : windows.features;
  const torch::Tensor rows = told.to(torch::kCPU).contiguous();
  const std::vector<int64_t> op_like =
      first_alike({rows.data_ptr<float>(), static_cast<size_t>(rows.numel())}, rows.size(1));
  const int64_t padding = rows.size(0) - 1;
  for (int64_t& place : places) {
    if (place != padding) place = op_like[static_cast<size_t>(place)];
  }
  const std::vector<int64_t> window_like = first_alike(places, options_.net.width);
  std::vector<int64_t> distinct;
  std::vector<int64_t> place_of(window_like.size());  // of a window among those that differ
  std::vector<int64_t> alike;
  for (size_t i = 0; i < window_like.size(); ++i) {
    const auto first = static_cast<size_t>(window_like[i]);
    if (first == i) {
      place_of[i] = static_cast<int64_t>(distinct.size());
      distinct.push_back(static_cast<int64_t>(i));
    }
    alike.push_back(place_of[first]);
  }
  windows.distinct = torch::tensor(distinct, torch::kInt64);
  windows.alike = torch::tensor(alike, torch::kInt64);
}

void EtsPredictor::add_weights(const DataSet& data, const Selection& examples, Windows& windows) const {
  std::vector<float> weights;
  std::vector<float> times;  // mean of the cells of a window's iteration
  for (size_t e = 0; e < examples.size(); ++e) {
    const double ms = std::max(data.examples()[examples[e]].targets.iteration_ms, kShortestMs);
    const double cell_ms = ms / static_cast<double>(kTargets * std::max<size_t>(windows.ops[e].size(), 1));
    const double weight = std::pow(relative() ? cell_ms : ms, -options_.balance);
    weights.insert(weights.end(), windows.starts[e].size(), static_cast<float>(weight));
    times.insert(times.end(), windows.starts[e].size(), static_cast<float>(cell_ms));
  }
  const auto count = static_cast<int64_t>(weights.size());
  const torch::Tensor all = torch::from_blob(weights.data(), {count}).clone();
  // With ratios times are weighed against logarithms, so the mean time of a cell becomes 1.
  const torch::Tensor mean = relative() ? (all * torch::from_blob(times.data(), {count})).mean() : all.mean();
  windows.weights = (all / mean).to(device_);
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

torch::Tensor EtsPredictor::forward(EtsNet& net, const Windows& windows, const torch::Tensor& batch) const {
  const torch::Tensor places = windows.places.index_select(0, batch);
  const int64_t width = options_.net.width;
  const int64_t padding = windows.features.size(0) - 1;
  const torch::Tensor input =
      windows.features.index_select(0, places.view(-1)).view({-1, width, windows.features.size(1)});
  const torch::Tensor present = (places != padding).to(torch::kFloat32);
  const torch::Tensor adjacency =
      windows.adjacency.defined() ? windows.adjacency.index_select(0, batch) : torch::Tensor();
  const torch::Tensor output = net(input, present, adjacency);
  if (!relative()) return output;
  const torch::Tensor times = output.clamp(kLeastRatio, kMostRatio).exp();
  const auto of_ops = [&](const torch::Tensor& table) {
    return table.index_select(0, places.view(-1)).view_as(output);
  };
  return of_ops(windows.scales) * times + of_ops(windows.offsets);
}

torch::Tensor EtsPredictor::loss_of(EtsNet& net, const Windows& windows, const torch::Tensor& batch) const {
  const torch::Tensor on_device = batch.to(device_);
  const torch::Tensor output = forward(net, windows, on_device);
  const torch::Tensor places = windows.places.index_select(0, on_device).view(-1);
  const torch::Tensor target = windows.targets.index_select(0, places).view_as(output);
  const auto distance = [&](const torch::Tensor& a, const torch::Tensor& b) {
    if (options_.loss == "mse") return torch::mse_loss(a, b, at::Reduction::None);
    if (options_.loss == "smooth_l1") return torch::smooth_l1_loss(a, b, at::Reduction::None, 0.5);
    if (options_.loss == "huber") return torch::huber_loss(a, b, at::Reduction::None);
    return torch::l1_loss(a, b, at::Reduction::None);
  };
  // Padding counts: its features and its times are 0, and the network learns so.
  torch::Tensor loss = distance(output, target).mean({1, 2});
  if (options_.sums > 0) {
    const auto cells = static_cast<double>(options_.net.width * kTargets);
    loss = loss + options_.sums / cells * distance(output.sum({1, 2}), target.sum({1, 2}));
  }
  if (windows.weights.defined()) loss = loss * windows.weights.index_select(0, on_device);
  if (options_.logs > 0 && relative()) {
    const torch::Tensor present = (places != windows.features.size(0) - 1).view({-1, options_.net.width, 1});
    const torch::Tensor off = (output.clamp_min(kLeastMs / 100).log() - target.clamp_min(kLeastMs).log()).abs();
    loss = loss + options_.logs * (off * present).mean({1, 2});
  }
  return loss.mean();
}

void EtsPredictor::forget() {
  options_.net.features = columns();
  options_.net.hidden = options_.hidden > 0 ? options_.hidden : options_.net.features;
  nets_.clear();
}

Result<TrainingLog> EtsPredictor::train(const DataSet& data, const TrainOptions& options) {
  auto device = device_named(options.device);
  if (!device) return device.error();
  if (options.start.empty()) {
    auto chosen = EtsOptions::from_settings(options.settings, defaults_);
    if (!chosen) return chosen.error();
    options_ = *chosen;
  } else if (const Status status = load(options.start); !status.ok()) {
    return status.error();
  }
  device_ = *device;
  std::vector<EtsNet> begun = std::move(nets_);
  return shared() ? train_in_form(in_shared_form(data), options, std::move(begun))
                  : train_in_form(data, options, std::move(begun));
}

Result<TrainingLog> EtsPredictor::train_in_form(const DataSet& data, const TrainOptions& options,
                                                std::vector<EtsNet> begun) {
  Fold fold = fold_for(data, options);
  const auto untimed = [&](uint32_t i) {
    const Targets& targets = data.examples()[i].targets;
    return targets.op_us.empty() || (lanes() ? targets.host_us : targets.gap_us).empty();
  };
  std::erase_if(fold.train, untimed);
  if (options.start.empty()) {
    begun.clear();
    encoder_ = FeatureEncoder(choice_for(data), OpVocabulary::of(data, fold.train));
    encoder_.fit_scaler(Scaler::Kind::standard, data, fold.train);
  }
  forget();
  const Windows windows = windows_of(data, fold.train, true);
  const Windows validation = windows_of(data, fold.validation, false);

  TrainingTask task{
      .samples = windows.places.size(0), .epochs = 100, .batch = 128, .learning_rate = 1e-3, .clip = 1, .decay = true};
  TrainingLog log;
  for (int64_t i = 0; i < options_.nets; ++i) {
    TrainOptions of_net = options;
    of_net.seed = options.seed + static_cast<uint64_t>(i);
    of_net.seconds = options.seconds / static_cast<double>(options_.nets);
    if (i > 0 && !options.checkpoint.empty()) of_net.checkpoint += "/net" + std::to_string(i + 1);
    torch::manual_seed(of_net.seed);
    EtsNet net = begun.empty() ? EtsNet(options_.net) : begun[static_cast<size_t>(i)];
    net->to(device_);
    task.module = net.get();
    task.loss = [&](const torch::Tensor& batch) { return loss_of(net, windows, batch); };
    if (options.meta) {
      const Status status = learn_across(data, fold.train, windows, net, of_net, task);
      if (!status.ok()) return status.error();
    }
    if (!fold.validation.empty()) {
      task.validation_error = [&] {
        const auto predictions = predict_windows(net, data, fold.validation, validation);
        return evaluate(data, fold.validation, predictions, Target::iteration_ms).all.mre;
      };
    }
    auto trained = run_training(task, of_net);
    if (!trained) return trained.error();
    nets_.push_back(net);
    trained->seconds += log.seconds;
    log = std::move(*trained);
  }
  if (options_.nets > 1 && !fold.validation.empty()) {
    const auto predictions = predict_windows(data, fold.validation, validation);
    log.best_validation_error = evaluate(data, fold.validation, predictions, Target::iteration_ms).all.mre;
  }
  return log;
}

Status EtsPredictor::learn_across(const DataSet& data, const Selection& examples, const Windows& windows, EtsNet& net,
                                  TrainOptions& options, TrainingTask& task) const {
  if (const Status status = check_alike(data, examples); !status.ok()) return status;
  auto learner = MetaLearner::create(*net, task.loss, tasks_of(data, examples, windows.starts), *options.meta,
                                     options.batch.value_or(task.batch));
  if (!learner) return learner.error();
  options.batch = options.meta->tasks;
  task.samples = learner->episodes();
  task.gradients = [learner = std::move(*learner)](const torch::Tensor& episodes) mutable {
    return learner.gradients(episodes);
  };
  return {};
}

std::vector<Prediction> EtsPredictor::predict(const DataSet& data, const Selection& examples) {
  CHECK(!nets_.empty(), "ETS must be trained or loaded before it predicts");
  return shared() ? predict_in_form(in_shared_form(data), examples) : predict_in_form(data, examples);
}

std::vector<Prediction> EtsPredictor::predict_in_form(const DataSet& data, const Selection& examples) {
  return predict_windows(data, examples, windows_of(data, examples, false));
}

std::vector<Prediction> EtsPredictor::predict_windows(const DataSet& data, const Selection& examples,
                                                      const Windows& windows) {
  torch::NoGradGuard guard;
  std::vector<Prediction> mean;
  const auto share = static_cast<float>(1.0 / static_cast<double>(nets_.size()));
  for (EtsNet& net : nets_) {
    net->eval();
    auto predictions = predict_windows(net, data, examples, windows);
    if (nets_.size() == 1) return predictions;
    mean.resize(predictions.size());
    for (size_t e = 0; e < predictions.size(); ++e) {
      const Prediction& one = predictions[e];
      Prediction& all = mean[e];
      all.iteration_ms = all.iteration_ms.value_or(0) + *one.iteration_ms * share;
      all.gpu_busy_ms = all.gpu_busy_ms.value_or(0) + *one.gpu_busy_ms * share;
      all.op_us.resize(one.op_us.size());
      all.gap_us.resize(one.gap_us.size());
      for (size_t i = 0; i < one.op_us.size(); ++i) {
        all.op_us[i] += one.op_us[i] * share;
        all.gap_us[i] += one.gap_us[i] * share;
      }
    }
  }
  return mean;
}

std::vector<Prediction> EtsPredictor::predict_windows(EtsNet& net, const DataSet& data, const Selection& examples,
                                                      const Windows& windows) const {
  const bool log = options_.target == "log";
  std::vector<torch::Tensor> parts;
  const int64_t count = windows.distinct.size(0);
  for (int64_t first = 0; first < count; first += kWindowsAtOnce) {
    const int64_t last = std::min(first + kWindowsAtOnce, count);
    parts.push_back(forward(net, windows, windows.distinct.slice(0, first, last).to(device_)).to(torch::kCPU));
  }
  const torch::Tensor all =
      parts.empty() ? torch::zeros({0}) : torch::cat(parts).index_select(0, windows.alike).contiguous();
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
    if (lanes()) {
      std::vector<float> gpu_us;
      std::vector<float> host_us;
      for (size_t i = 0; i < ops.size(); ++i) {
        gpu_us.push_back(from_target(means[2 * i], log));
        host_us.push_back(from_target(means[2 * i + 1], log));
      }
      const Device device = devices_.find(data.examples()[examples[e]].device);
      predictions.push_back(lane_prediction(gpu_us, host_us, ops, op_count, device));
      continue;
    }
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
  CHECK(!nets_.empty(), "ETS must be trained before it is saved");
  const nlohmann::json described = {{"settings", options_.to_settings()}, {"features", encoder_.to_json()}};
  if (Status status = write_json(folder, "predictor.json", described); !status.ok()) return status;
  for (size_t i = 0; i < nets_.size(); ++i) {
    if (Status status = save_module(*nets_[i], weights_file(folder, i)); !status.ok()) return status;
  }
  return {};
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
  device_ = torch::kCPU;
  forget();
  for (int64_t i = 0; i < options_.nets; ++i) {
    nets_.emplace_back(options_.net);
    if (Status status = load_module(*nets_.back(), weights_file(folder, static_cast<size_t>(i))); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace forerun::learn
