#include "learn/driple/driple_inspector.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/nearest.h"
#include "learn/trainer.h"
#include "learn/weights_json.h"

namespace forerun::learn {
namespace {

constexpr int64_t kDripleBatchSize = 32;
constexpr int64_t kDripleEpochs = 300;
constexpr double kLeastMetric = 1e-3;
constexpr int64_t kDeepest = 2048;

struct WordSetting {
  const char* key;
  std::string DripleOptions::*field;
  std::vector<std::string> allowed;
};

const std::vector<WordSetting>& word_settings() {
  static const std::vector<WordSetting> list = {
      {"layer", &DripleOptions::layer, {"gcn", "gin", "gat", "mpnn"}},
      {"readout", &DripleOptions::readout, {"set2set", "sum", "mean", "max"}},
      {"grouping", &DripleOptions::grouping, {"none", "uniform", "proportional"}},
      {"target", &DripleOptions::target, {"log", "max"}},
      {"globals", &DripleOptions::globals, {"yes", "no"}}};
  return list;
}

Error no_such_value(const std::string& key, const std::string& value, const std::string& allowed) {
  return {"'" + value + "' is no value of '" + key + "'", "settings of driple", "use " + allowed};
}

Grouping grouping_named(const std::string& name) {
  if (name == "none") return Grouping::none;
  return name == "uniform" ? Grouping::uniform : Grouping::proportional;
}

Selection examples_of(const ResourceData& data, const Selection& workloads) {
  Selection examples;
  for (const uint32_t i : workloads) examples.push_back(data.workloads[i].example);
  return examples;
}

std::vector<double> numbers_in(const nlohmann::json& json, size_t count) {
  std::vector<double> numbers;
  if (!json.is_array()) return numbers;
  for (const auto& value : json) {
    if (value.is_number()) numbers.push_back(value.get<double>());
  }
  if (numbers.size() != count) numbers.clear();
  return numbers;
}

}  // namespace

// Graphs one behind the other.
struct DripleInspector::Graphs {
  std::vector<int64_t> first_node = {0}, first_edge = {0};
  std::vector<float> nodes;             // kGroupFeatures each
  std::vector<int64_t> source, target;  // nodes counted in their graph
  std::vector<float> weight;
  std::vector<float> globals;
};

Settings DripleInspector::settings() const {
  Settings settings = {{"groups", std::to_string(options_.groups)}, {"depth", std::to_string(options_.depth)}};
  for (const WordSetting& word : word_settings()) settings[word.key] = options_.*word.field;
  return settings;
}

Status DripleInspector::choose(const Settings& settings) {
  options_ = {};
  for (const auto& [key, value] : settings) {
    const auto word = std::find_if(word_settings().begin(), word_settings().end(),
                                   [&name = key](const WordSetting& w) { return name == w.key; });
    if (word != word_settings().end()) {
      if (std::find(word->allowed.begin(), word->allowed.end(), value) == word->allowed.end()) {
        std::string list;
        for (const std::string& name : word->allowed) list += (list.empty() ? "" : ", ") + name;
        return no_such_value(key, value, list);
      }
      options_.*word->field = value;
    } else if (key == "groups" || key == "depth") {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      const int64_t least = key == "depth" ? 0 : 1;
      if (error != std::errc() || end != value.data() + value.size() || number < least || number > kDeepest) {
        return no_such_value(key, value, std::to_string(least) + " to " + std::to_string(kDeepest));
      }
      (key == "groups" ? options_.groups : options_.depth) = number;
    } else {
      std::vector<std::string> known = {"groups", "depth"};
      for (const WordSetting& each : word_settings()) known.emplace_back(each.key);
      return Error{"there is no setting '" + key + "'", "settings of driple", did_you_mean(key, known)};
    }
  }
  return {};
}

void DripleInspector::fit_scales(const ResourceData& data, const Selection& training) {
  frequencies_ = operator_frequencies(data.iterations, examples_of(data, training));
  feature_scale_ = {1, 1, 1};
  const Graphs graphs = graphs_of(data, training);
  std::array<double, kGroupFeatures> most = {1e-9, 1e-9, 1e-9};
  for (size_t i = 0; i < graphs.nodes.size(); ++i) {
    most[i % kGroupFeatures] = std::max<double>(most[i % kGroupFeatures], graphs.nodes[i]);
  }
  feature_scale_ = most;
  const auto count = static_cast<double>(std::max<size_t>(training.size(), 1));
  const double nodes = static_cast<double>(graphs.first_node.back()) / count;
  depth_ = options_.depth > 0 ? options_.depth : std::max<int64_t>(2, std::llround(nodes / 2));
  fit_targets(data, training);
}

void DripleInspector::fit_targets(const ResourceData& data, const Selection& training) {
  const auto count = static_cast<double>(std::max<size_t>(training.size(), 1));
  for (size_t m = 0; m < kResourceMetrics; ++m) {
    double sum = 0;
    double squares = 0;
    double largest = kLeastMetric;
    for (const uint32_t i : training) {
      const double value = std::max(data.workloads[i].measured[m], kLeastMetric);
      sum += std::log(value) / count;
      squares += std::log(value) * std::log(value) / count;
      largest = std::max(largest, value);
    }
    const bool logarithms = options_.target == "log";
    center_[m] = logarithms ? sum : 0;
    spread_[m] = logarithms ? std::sqrt(std::max(squares - sum * sum, 1e-6)) : largest;
  }
}

DripleInspector::Graphs DripleInspector::graphs_of(const ResourceData& data, const Selection& workloads) const {
  Graphs graphs;
  for (const uint32_t i : workloads) {
    const ResourceWorkload& workload = data.workloads[i];
    const GroupedGraph grouped = group_ops(data.iterations, data.iterations.examples()[workload.example], frequencies_,
                                           grouping_named(options_.grouping), static_cast<size_t>(options_.groups));
    std::vector<double> degree(grouped.features.size(), 1);
    for (const auto& [source, target] : grouped.edges) degree[target] += 1;
    const auto link = [&](uint32_t source, uint32_t target) {
      graphs.source.push_back(source);
      graphs.target.push_back(target);
      graphs.weight.push_back(static_cast<float>(1 / std::sqrt(degree[source] * degree[target])));
    };
    for (const auto& [source, target] : grouped.edges) link(source, target);
    for (uint32_t node = 0; node < grouped.features.size(); ++node) {
      link(node, node);
      for (size_t f = 0; f < kGroupFeatures; ++f) {
        const double raw = f == 0 ? grouped.features[node][f] : std::log1p(grouped.features[node][f]);
        graphs.nodes.push_back(static_cast<float>(raw / feature_scale_[f]));
      }
    }
    graphs.first_node.push_back(static_cast<int64_t>(graphs.nodes.size() / kGroupFeatures));
    graphs.first_edge.push_back(static_cast<int64_t>(graphs.source.size()));
    graphs.globals.insert(graphs.globals.end(), workload.globals.begin(), workload.globals.end());
  }
  return graphs;
}

DripleBatch DripleInspector::batch_of(const Graphs& graphs, const torch::Tensor& chosen) const {
  std::vector<float> nodes, weight, globals;
  std::vector<int64_t> graph_of, source, target;
  const int64_t width = static_cast<int64_t>(graphs.globals.size()) / (std::ssize(graphs.first_node) - 1);
  int64_t before = 0;
  for (int64_t i = 0; i < chosen.numel(); ++i) {
    const auto graph = static_cast<size_t>(chosen.data_ptr<int64_t>()[i]);
    const int64_t from = graphs.first_node[graph];
    const int64_t to = graphs.first_node[graph + 1];
    nodes.insert(nodes.end(), graphs.nodes.begin() + 3 * from, graphs.nodes.begin() + 3 * to);
    graph_of.insert(graph_of.end(), static_cast<size_t>(to - from), i);
    for (auto e = static_cast<size_t>(graphs.first_edge[graph]); e < static_cast<size_t>(graphs.first_edge[graph + 1]);
         ++e) {
      source.push_back(graphs.source[e] + before);
      target.push_back(graphs.target[e] + before);
      weight.push_back(graphs.weight[e]);
    }
    const auto row = graphs.globals.begin() + static_cast<int64_t>(graph) * width;
    globals.insert(globals.end(), row, row + width);
    before += to - from;
  }
  const auto floats = [&](const std::vector<float>& values, int64_t columns) {
    return torch::tensor(values).view({-1, columns}).to(device_);
  };
  const auto whole = [&](const std::vector<int64_t>& values) {
    return torch::tensor(values, torch::kInt64).to(device_);
  };
  return {.graphs = chosen.numel(),
          .nodes = floats(nodes, 3),
          .graph_of = whole(graph_of),
          .source = whole(source),
          .target = whole(target),
          .weight = floats(weight, 1),
          .globals = floats(globals, std::max<int64_t>(width, 1))};
}

void DripleInspector::make_net(int64_t globals) {
  globals_ = options_.globals == "yes" ? globals : 0;
  net_ = std::make_shared<DripleNet>(
      DripleShape{.layer = options_.layer, .readout = options_.readout, .depth = depth_, .globals = globals_});
}

std::vector<ResourceMetrics> DripleInspector::answers(const Graphs& graphs) {
  std::vector<ResourceMetrics> all;
  const auto count = std::ssize(graphs.first_node) - 1;
  for (int64_t first = 0; first < count; first += kDripleBatchSize) {
    const torch::Tensor chosen =
        torch::arange(first, std::min<int64_t>(first + kDripleBatchSize, count), torch::kInt64);
    const torch::Tensor output = net_->forward(batch_of(graphs, chosen)).to(torch::kCPU).contiguous();
    const auto* value = output.data_ptr<float>();
    for (int64_t i = 0; i < output.size(0); ++i) {
      ResourceMetrics metrics{};
      for (size_t m = 0; m < kResourceMetrics; ++m, ++value) {
        const double scaled = center_[m] + spread_[m] * std::clamp<double>(*value, -10, 10);
        metrics[m] = options_.target == "log" ? std::exp(scaled) : std::max(scaled, 0.0);
      }
      all.push_back(metrics);
    }
  }
  return all;
}

Result<TrainingLog> DripleInspector::fit(const ResourceData& data, const Selection& training,
                                         const Selection& validation, const TrainOptions& options) {
  std::vector<float> labels;
  for (const uint32_t i : training) {
    for (size_t m = 0; m < kResourceMetrics; ++m) {
      const double value = std::max(data.workloads[i].measured[m], kLeastMetric);
      labels.push_back(
          static_cast<float>(((options_.target == "log" ? std::log(value) : value) - center_[m]) / spread_[m]));
    }
  }
  const torch::Tensor wanted = torch::tensor(labels).view({-1, static_cast<int64_t>(kResourceMetrics)}).to(device_);
  const Graphs graphs = graphs_of(data, training);
  const Graphs aside = graphs_of(data, validation);
  TrainingTask task{.module = net_.get(),
                    .samples = std::ssize(training),
                    .loss =
                        [&](const torch::Tensor& batch) {
                          const torch::Tensor output = net_->forward(batch_of(graphs, batch));
                          return (output - wanted.index_select(0, batch.to(device_))).square().mean();
                        },
                    .epochs = kDripleEpochs,
                    .batch = kDripleBatchSize,
                    .learning_rate = 0.003,
                    .weight_decay = 1e-6,
                    .clip = 1,
                    .decay = true};
  if (!validation.empty()) {
    task.validation_error = [&] { return mean_of(resource_errors(data, validation, answers(aside))); };
  }
  return run_training(task, options);
}

Result<TrainingLog> DripleInspector::train(const ResourceData& data, const Selection& training,
                                           const Selection& validation, const TrainOptions& options) {
  if (const Status status = choose(options.settings); !status.ok()) return status.error();
  if (training.empty()) return Error{"there is no workload to train on", "", "check the setting's name"};
  const auto device = device_named(options.device);
  if (!device) return device.error();
  device_ = *device;
  fit_scales(data, training);
  torch::manual_seed(options.seed);
  make_net(std::ssize(data.workloads[training[0]].globals));
  partitioned_ = false;
  net_->to(device_);
  auto log = fit(data, training, validation, options);
  net_->share_halves();
  return log;
}

Result<TrainingLog> DripleInspector::transfer(const ResourceData& data, const Selection& training,
                                              const Selection& validation, const TrainOptions& options) {
  CHECK(net_ != nullptr, "a network is trained or loaded before it is tuned");
  if (training.empty()) return Error{"there is no workload to tune on", "", "check the setting's name"};
  const auto device = device_named(options.device);
  if (!device) return device.error();
  device_ = *device;
  net_->to(device_);
  net_->partition();
  partitioned_ = true;
  fit_targets(data, training);
  return fit(data, training, validation, options);
}

std::vector<ResourceMetrics> DripleInspector::predict(const ResourceData& data, const Selection& workloads) {
  CHECK(net_ != nullptr, "a network is trained or loaded before it predicts");
  if (workloads.empty()) return {};
  torch::NoGradGuard guard;
  net_->eval();
  return answers(graphs_of(data, workloads));
}

Status DripleInspector::save(const std::string& folder) const {
  CHECK(net_ != nullptr, "a network is trained before it is saved");
  const nlohmann::json described = {{"settings", settings()},      {"depth", depth_},      {"globals", globals_},
                                    {"frequencies", frequencies_}, {"center", center_},    {"spread", spread_},
                                    {"features", feature_scale_},  {"tuned", partitioned_}};
  if (Status status = write_json(folder, "predictor.json", described); !status.ok()) return status;
  return save_module(*net_, (std::filesystem::path(folder) / "weights.pt").string());
}

Status DripleInspector::load(const std::string& folder) {
  const auto described =
      read_json(folder, "predictor.json",
                {"settings", "depth", "globals", "frequencies", "center", "spread", "features", "tuned"});
  if (!described) return described.error();
  const auto settings = settings_from(*described);
  if (!settings) return settings.error().within(folder);
  if (const Status status = choose(*settings); !status.ok()) return status.error().within(folder);
  const std::vector<double> center = numbers_in(described->at("center"), kResourceMetrics);
  const std::vector<double> spread = numbers_in(described->at("spread"), kResourceMetrics);
  const std::vector<double> features = numbers_in(described->at("features"), kGroupFeatures);
  const nlohmann::json& depth = described->at("depth");
  const nlohmann::json& globals = described->at("globals");
  if (center.empty() || spread.empty() || features.empty() || !depth.is_number_integer() || depth < 1 ||
      depth > kDeepest || !globals.is_number_integer() || globals < 0 || globals > kDeepest ||
      !described->at("frequencies").is_object()) {
    return Error{"the weights' description makes no sense", folder, "name a folder that `forerun train driple` wrote"};
  }
  std::copy(center.begin(), center.end(), center_.begin());
  std::copy(spread.begin(), spread.end(), spread_.begin());
  std::copy(features.begin(), features.end(), feature_scale_.begin());
  frequencies_.clear();
  for (const auto& [name, share] : described->at("frequencies").items()) {
    if (share.is_number()) frequencies_[name] = share.get<double>();
  }
  depth_ = depth.get<int64_t>();
  device_ = torch::kCPU;
  make_net(globals.get<int64_t>());
  if (const Status status = load_module(*net_, (std::filesystem::path(folder) / "weights.pt").string()); !status.ok()) {
    return status;
  }
  partitioned_ = described->at("tuned") == true;
  if (partitioned_) {
    net_->keep_apart();
  }
  return {};
}

Result<std::unique_ptr<ResourcePredictor>> make_driple() {
  return std::unique_ptr<ResourcePredictor>(std::make_unique<DripleInspector>());
}

}  // namespace forerun::learn
