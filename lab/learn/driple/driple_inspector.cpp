#include "lab/learn/driple/driple_inspector.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "lab/dataset/weights_files.h"
#include "lab/learn/trainer.h"

namespace forerun::learn {
namespace {

constexpr int64_t kDripleBatchSize = 32;
constexpr int64_t kDripleEpochs = 300;
constexpr double kLeastMetric = 1e-3;
constexpr double kFarthestTarget = 10;  // deviations
constexpr double kFarthestRatio = 2;    // logarithm; beyond it nothing is learned
constexpr int64_t kDeepest = 2048;

double log_metric(double value) { return std::log(std::max(value, kLeastMetric)); }

// The network's tensors are small: threads would spend their time waiting for each other.
class OneThread {
 public:
  OneThread() : before_(torch::get_num_threads()) { torch::set_num_threads(1); }
  ~OneThread() { torch::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

std::vector<double> numbers_in(const nlohmann::json& json) {
  std::vector<double> numbers;
  if (!json.is_array()) return numbers;
  for (const auto& value : json) {
    if (value.is_number()) numbers.push_back(value.get<double>());
  }
  return numbers;
}

std::string driple_weights_file(const std::string& folder, size_t net) {
  const std::string name = net == 0 ? "weights.pt" : "weights." + std::to_string(net + 1) + ".pt";
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace

ResourceMetrics DripleInspector::targets_of(const ResourceWorkload& workload) const {
  ResourceMetrics targets{};
  for (size_t m = 0; m < kResourceMetrics; ++m) {
    targets[m] = options_.target == "log" ? log_metric(workload.measured[m]) : workload.measured[m];
    if (options_.basis == "simulation") targets[m] -= log_metric(workload.simulated[m]);
  }
  return targets;
}

ResourceMetrics DripleInspector::metrics_of(const ResourceWorkload& workload, const float* outputs) const {
  ResourceMetrics metrics{};
  for (size_t m = 0; m < kResourceMetrics; ++m) {
    double value = center_[m] + spread_[m] * std::clamp<double>(outputs[m], -kFarthestTarget, kFarthestTarget);
    if (options_.basis == "simulation") value += log_metric(workload.simulated[m]);
    metrics[m] = options_.target == "log" ? std::exp(value) : std::max(value, 0.0);
  }
  return metrics;
}

void DripleInspector::fit_targets(const ResourceData& data, const Selection& training) {
  const auto count = static_cast<double>(training.size());
  ResourceMetrics sums{}, squares{}, largest{};
  for (const uint32_t i : training) {
    const ResourceMetrics targets = targets_of(data.workloads[i]);
    for (size_t m = 0; m < kResourceMetrics; ++m) {
      sums[m] += targets[m] / count;
      squares[m] += targets[m] * targets[m] / count;
      largest[m] = std::max(largest[m], targets[m]);
    }
  }
  for (size_t m = 0; m < kResourceMetrics; ++m) {
    const bool logarithms = options_.target == "log";
    center_[m] = logarithms ? sums[m] : 0;
    spread_[m] =
        logarithms ? std::sqrt(std::max(squares[m] - sums[m] * sums[m], 1e-6)) : std::max(largest[m], kLeastMetric);
  }
}

std::shared_ptr<DripleNet> DripleInspector::make_net() const {
  return std::make_shared<DripleNet>(DripleShape{.layer = options_.layer,
                                                 .readout = options_.readout,
                                                 .depth = depth_,
                                                 .globals = static_cast<int64_t>(scales_.globals_center.size()),
                                                 .dropout = 0.01 * static_cast<double>(options_.dropout),
                                                 .late = 0.01 * static_cast<double>(options_.late)});
}

Status DripleInspector::use_device(const std::string& name) {
  const auto device = device_named(name);
  if (!device) return device.error();
  device_ = *device;
  for (const auto& net : nets_) net->to(device_);
  return {};
}

// The mean over the networks, in the targets' scale.
std::vector<ResourceMetrics> DripleInspector::answers(const std::vector<std::shared_ptr<DripleNet>>& nets,
                                                      const ResourceData& data, const Selection& workloads,
                                                      const DripleGraphs& graphs) const {
  std::vector<ResourceMetrics> all;
  for (int64_t first = 0; first < graphs.size(); first += kDripleBatchSize) {
    const int64_t last = std::min<int64_t>(first + kDripleBatchSize, graphs.size());
    const DripleBatch batch = graphs.batch(torch::arange(first, last, torch::kInt64), device_);
    torch::Tensor sum;
    for (const auto& net : nets) {
      const torch::Tensor output = net->forward(batch);
      sum = sum.defined() ? sum + output : output;
    }
    const torch::Tensor mean = (sum / static_cast<double>(nets.size())).to(torch::kCPU).contiguous();
    for (int64_t i = first; i < last; ++i) {
      const float* outputs = mean.data_ptr<float>() + (i - first) * static_cast<int64_t>(kResourceMetrics);
      all.push_back(metrics_of(data.workloads[workloads[static_cast<size_t>(i)]], outputs));
    }
  }
  return all;
}

Result<TrainingLog> DripleInspector::fit(DripleNet& net, const ResourceData& data, const ResourceFold& fold,
                                         const TrainOptions& options) const {
  std::vector<float> labels;
  for (const uint32_t i : fold.training) {
    const ResourceMetrics targets = targets_of(data.workloads[i]);
    for (size_t m = 0; m < kResourceMetrics; ++m) {
      labels.push_back(static_cast<float>((targets[m] - center_[m]) / spread_[m]));
    }
  }
  const torch::Tensor wanted = torch::tensor(labels).view({-1, static_cast<int64_t>(kResourceMetrics)}).to(device_);
  const torch::Tensor spreads =
      torch::tensor(std::vector<float>(spread_.begin(), spread_.end())).view({1, -1}).to(device_);
  const DripleGraphs graphs(data, fold.training, options_, scales_);
  const DripleGraphs aside(data, fold.validation, options_, scales_);
  TrainingTask task{.module = &net,
                    .samples = std::ssize(fold.training),
                    .loss =
                        [&](const torch::Tensor& batch) {
                          const torch::Tensor output = net.forward(graphs.batch(batch, device_));
                          const torch::Tensor off = output - wanted.index_select(0, batch.to(device_));
                          if (options_.loss == "squares") return off.square().mean();
                          return (off * spreads).clamp_max(kFarthestRatio).expm1().abs().mean();
                        },
                    .epochs = kDripleEpochs,
                    .batch = kDripleBatchSize,
                    .learning_rate = 0.003,
                    .weight_decay = 1e-6,
                    .clip = 1,
                    .decay = true};
  if (!fold.validation.empty()) {
    const std::vector<std::shared_ptr<DripleNet>> alone = {std::shared_ptr<DripleNet>(&net, [](DripleNet*) {})};
    task.validation_error = [&data, &fold, &aside, alone, this] {
      return mean_of(resource_errors(data, fold.validation, answers(alone, data, fold.validation, aside)));
    };
  }
  return run_training(task, options);
}

// Every network in turn, on folds of its own but for the first; the log is of the first, with the seconds of all and the
// mean of their validation errors.
Result<TrainingLog> DripleInspector::fit_all(const ResourceData& data, const Selection& training,
                                             const Selection& validation, const TrainOptions& options) {
  const OneThread guard;
  Selection both = training;
  both.insert(both.end(), validation.begin(), validation.end());
  std::sort(both.begin(), both.end());
  TrainingLog log;
  for (size_t n = 0; n < nets_.size(); ++n) {
    TrainOptions own = options;
    own.seed = options.seed + n;
    ResourceFold fold{training, validation};
    if (n > 0 && !validation.empty()) {
      fold = resource_fold(data, both, own.seed,
                           static_cast<double>(validation.size()) / static_cast<double>(both.size()));
    }
    auto each = fit(*nets_[n], data, fold, own);
    if (!each) return each.error();
    if (n == 0) {
      log = std::move(*each);
    } else {
      log.seconds += each->seconds;
      log.best_validation_error += each->best_validation_error;
    }
  }
  log.best_validation_error /= static_cast<double>(nets_.size());
  return log;
}

Result<TrainingLog> DripleInspector::train(const ResourceData& data, const Selection& training,
                                           const Selection& validation, const TrainOptions& options) {
  options_ = {};
  if (const Status status = set_driple_options(options.settings, options_); !status.ok()) return status.error();
  if ((options_.basis == "simulation" || options_.loss == "percent") && options_.target != "log") {
    return Error{"ratios are learned as logarithms", "settings of driple", "use target=log"};
  }
  if (training.empty()) return Error{"there is no workload to train on", "", "check the setting's name"};
  nets_.clear();
  if (const Status status = use_device(options.device); !status.ok()) return status.error();
  scales_ = fit_driple_scales(data, training, options_);
  const double nodes = DripleGraphs(data, training, options_, scales_).mean_nodes();
  depth_ = options_.depth > 0 ? options_.depth : std::max<int64_t>(2, std::llround(nodes / 2));
  fit_targets(data, training);
  for (int64_t n = 0; n < options_.nets; ++n) {
    torch::manual_seed(options.seed + static_cast<uint64_t>(n));
    nets_.push_back(make_net());
    nets_.back()->to(device_);
  }
  partitioned_ = false;
  auto log = fit_all(data, training, validation, options);
  for (const auto& net : nets_) net->share_layers();
  return log;
}

Result<TrainingLog> DripleInspector::transfer(const ResourceData& data, const Selection& training,
                                              const Selection& validation, const TrainOptions& options) {
  CHECK(!nets_.empty(), "a network is trained or loaded before it is tuned");
  if (training.empty()) return Error{"there is no workload to tune on", "", "check the setting's name"};
  Settings anew;
  for (const char* key : {"tune", "late", "rescale", "dropout", "loss"}) {
    if (const auto named = options.settings.find(key); named != options.settings.end()) anew.insert(*named);
  }
  if (const Status status = set_driple_options(anew, options_); !status.ok()) return status.error();
  if (const Status status = use_device(options.device); !status.ok()) return status.error();
  for (const auto& net : nets_) {
    net->set_dropout(0.01 * static_cast<double>(options_.dropout));
    if (options_.tune == "all") {
      net->tune_all();
    } else {
      net->tune_parts(driple_parts(options_.tune), 0.01 * static_cast<double>(options_.late));
    }
    partitioned_ = net->is_apart();
  }
  if (options_.rescale == "yes") fit_targets(data, training);
  return fit_all(data, training, validation, options);
}

std::vector<ResourceMetrics> DripleInspector::predict(const ResourceData& data, const Selection& workloads) {
  CHECK(!nets_.empty(), "a network is trained or loaded before it predicts");
  if (workloads.empty()) return {};
  const torch::NoGradGuard guard;
  const OneThread thread;
  for (const auto& net : nets_) net->eval();
  return answers(nets_, data, workloads, DripleGraphs(data, workloads, options_, scales_));
}

Status DripleInspector::save(const std::string& folder) const {
  CHECK(!nets_.empty(), "a network is trained before it is saved");
  const nlohmann::json described = {{"settings", settings()},
                                    {"depth", depth_},
                                    {"frequencies", scales_.frequencies},
                                    {"center", center_},
                                    {"spread", spread_},
                                    {"features", scales_.features},
                                    {"globals", {scales_.globals_center, scales_.globals_spread}},
                                    {"tuned", partitioned_}};
  if (Status status = write_json(folder, "predictor.json", described); !status.ok()) return status;
  for (size_t n = 0; n < nets_.size(); ++n) {
    if (Status status = save_module(*nets_[n], driple_weights_file(folder, n)); !status.ok()) return status;
  }
  return {};
}

Status DripleInspector::load(const std::string& folder) {
  const auto described =
      read_json(folder, "predictor.json",
                {"settings", "depth", "frequencies", "center", "spread", "features", "globals", "tuned"});
  if (!described) return described.error();
  const auto settings = settings_from(*described);
  if (!settings) return settings.error().within(folder);
  options_ = {};
  if (const Status status = set_driple_options(*settings, options_); !status.ok()) return status.error().within(folder);
  const std::vector<double> center = numbers_in(described->at("center"));
  const std::vector<double> spread = numbers_in(described->at("spread"));
  const std::vector<double> features = numbers_in(described->at("features"));
  const nlohmann::json& depth = described->at("depth");
  const nlohmann::json& globals = described->at("globals");
  const bool paired =
      globals.is_array() && globals.size() == 2 && numbers_in(globals[0]).size() == numbers_in(globals[1]).size();
  if (center.size() != kResourceMetrics || spread.size() != kResourceMetrics || features.size() != kGroupFeatures ||
      !depth.is_number_integer() || depth < 1 || depth > kDeepest || !paired ||
      !described->at("frequencies").is_object()) {
    return Error{"the weights' description makes no sense", folder, "name a folder that `forerun train driple` wrote"};
  }
  std::copy(center.begin(), center.end(), center_.begin());
  std::copy(spread.begin(), spread.end(), spread_.begin());
  std::copy(features.begin(), features.end(), scales_.features.begin());
  scales_.globals_center = numbers_in(globals[0]);
  scales_.globals_spread = numbers_in(globals[1]);
  scales_.frequencies.clear();
  for (const auto& [name, share] : described->at("frequencies").items()) {
    if (share.is_number()) scales_.frequencies[name] = share.get<double>();
  }
  depth_ = depth.get<int64_t>();
  device_ = torch::kCPU;
  partitioned_ = described->at("tuned") == true;
  nets_.clear();
  for (int64_t n = 0; n < options_.nets; ++n) {
    nets_.push_back(make_net());
    const Status status = load_module(*nets_.back(), driple_weights_file(folder, static_cast<size_t>(n)));
    if (!status.ok()) return status;
    if (partitioned_) nets_.back()->keep_apart();
  }
  return {};
}

Result<std::unique_ptr<ResourcePredictor>> make_driple() {
  return std::unique_ptr<ResourcePredictor>(std::make_unique<DripleInspector>());
}

}  // namespace forerun::learn
