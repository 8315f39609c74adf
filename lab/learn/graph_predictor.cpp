#include "lab/learn/graph_predictor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/nearest.h"
#include "lab/dataset/weights_files.h"
#include "lab/learn/trainer.h"

namespace forerun::learn {
namespace {

constexpr int64_t kNodesAtOnce = 60000;  // when predicting
constexpr double kFarthestAnswer = 12;   // from the mean logarithm that an answer may lie
constexpr double kFarthestLog = 20;      // from 0 that logarithms which are added up may lie
constexpr double kLeastSum = 1e-9;       // of a graph without nodes
constexpr double kLogScale = 4;          // brings logarithms of sums to the range that layers like

torch::Tensor tensor_of(const std::vector<int64_t>& values, torch::Device device) {
  return torch::from_blob(const_cast<int64_t*>(values.data()), {static_cast<int64_t>(values.size())}, torch::kInt64)
      .clone()
      .to(device);
}

torch::Tensor tensor_of(const std::vector<float>& values, size_t width, torch::Device device) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(values.size() / width), static_cast<int64_t>(width)};
  return torch::from_blob(const_cast<float*>(values.data()), shape).clone().to(device);
}

Error bad(const std::string& system, const std::string& key, const std::string& value,
          const std::vector<std::string>& allowed) {
  std::string list;
  for (const std::string& name : allowed) list += (list.empty() ? "" : ", ") + name;
  return {"'" + value + "' is no value of '" + key + "'", "settings of " + system, "use one of: " + list};
}

Status set_word(const std::string& system, const std::string& key, const std::string& value,
                const std::vector<std::string>& allowed, std::string& into) {
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) return bad(system, key, value, allowed);
  into = value;
  return {};
}

Status set_number(const std::string& system, const std::string& key, const std::string& value, int64_t most,
                  int64_t& into) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  if (error != std::errc() || end != value.data() + value.size() || into < 1 || into > most) {
    return bad(system, key, value, {"1 to " + std::to_string(most)});
  }
  return {};
}

}  // namespace

Settings GraphOptions::to_settings() const {
  Settings settings = {{"layers", std::to_string(layers)},
                       {"hidden", std::to_string(hidden)},
                       {"graph", graph},
                       {"scaler", scaler},
                       {"tensor_cost", tensor_cost},
                       {"readout", readout}};
  if (!encoder.empty()) settings["encoder"] = encoder;
  return settings;
}

GraphTensors::GraphTensors(const GraphTables& tables, torch::Device device)
    : first_node_(tables.first_node), first_edge_(tables.first_edge), device_(device) {
  node_begin_ = tensor_of(std::vector<int64_t>(first_node_.begin(), first_node_.end()), device);
  edge_begin_ = tensor_of(std::vector<int64_t>(first_edge_.begin(), first_edge_.end()), device);
  rows_ = tensor_of(tables.rows, tables.node_width, device);
  names_ = tensor_of(tables.names, device);
  nodes_ = tensor_of(tables.nodes, device);
  sources_ = tensor_of(tables.sources, device);
  targets_ = tensor_of(tables.targets, device);
  edges_ = tensor_of(tables.edges, GraphFeatures::kEdgeWidth, device);
  whole_ = tensor_of(tables.whole, GraphFeatures::kWholeWidth, device);
}

int64_t GraphTensors::nodes_of(int64_t graph) const {
  const auto at = static_cast<size_t>(graph);
  return static_cast<int64_t>(first_node_[at + 1] - first_node_[at]);
}

namespace {

// Parts of one list, chosen and put side by side: of each place which part it is of, and where it stood in the list.
struct Chosen {
  torch::Tensor part;   // int64: number among the chosen parts
  torch::Tensor first;  // int64, by part: its first place among the chosen
  torch::Tensor index;  // int64: place in the list
};

// All on the device but for the sum, so that no step waits for a copy. `begin`: where parts begin, and the last ends.
Chosen choose_parts(const torch::Tensor& begin, const torch::Tensor& parts, int64_t total) {
  const torch::Tensor start = begin.index_select(0, parts);
  const torch::Tensor counts = begin.index_select(0, parts + 1) - start;
  const torch::Tensor numbers = torch::arange(parts.size(0), begin.options());
  Chosen chosen;
  chosen.part = torch::repeat_interleave(numbers, counts, 0, total);
  chosen.first = counts.cumsum(0) - counts;
  chosen.index = torch::arange(total, begin.options()) + (start - chosen.first).index_select(0, chosen.part);
  return chosen;
}

}  // namespace

GraphBatch GraphTensors::batch(std::span<const int64_t> graphs) const {
  std::vector<int64_t> sizes;
  int64_t nodes = 0;
  int64_t edges = 0;
  for (const int64_t graph : graphs) {
    sizes.push_back(nodes_of(graph));
    nodes += sizes.back();
    edges +=
        static_cast<int64_t>(first_edge_[static_cast<size_t>(graph) + 1] - first_edge_[static_cast<size_t>(graph)]);
  }
  const torch::Tensor parts = torch::tensor(at::ArrayRef<int64_t>(graphs.data(), graphs.size())).to(device_);
  const Chosen node = choose_parts(node_begin_, parts, nodes);
  const Chosen edge = choose_parts(edge_begin_, parts, edges);
  const torch::Tensor shift = node.first.index_select(0, edge.part);  // nodes of the batch before an edge's graph
  const torch::Tensor rows = nodes_.index_select(0, node.index);
  return {.graphs = static_cast<int64_t>(graphs.size()),
          .names = names_.index_select(0, rows),
          .nodes = rows_.index_select(0, rows),
          .graph_of = node.part,
          .position = torch::arange(nodes, node.part.options()) - node.first.index_select(0, node.part),
          .sizes = torch::tensor(sizes, torch::kInt64),
          .source = sources_.index_select(0, edge.index) + shift,
          .target = targets_.index_select(0, edge.index) + shift,
          .edges = edges_.index_select(0, edge.index),
          .whole = whole_.index_select(0, parts)};
}

GraphPredictor::GraphPredictor(GraphSystem system, Target quantity)
    : system_(std::move(system)), quantity_(quantity), options_(system_.defaults) {
  CHECK(quantity != Target::gpu_busy_ms, "graph predictors answer with iteration time or memory");
}

Settings GraphPredictor::settings() const { return options_.to_settings(); }

Status GraphPredictor::choose(const Settings& settings) {
  options_ = system_.defaults;
  const std::string name = system_.name;
  for (const auto& [key, value] : settings) {
    Status status;
    if (key == "layers") {
      status = set_number(name, key, value, 16, options_.layers);
    } else if (key == "hidden") {
      status = set_number(name, key, value, 2048, options_.hidden);
    } else if (key == "graph") {
      status = set_word(name, key, value, {"forward", "iteration"}, options_.graph);
    } else if (key == "scaler") {
      status = set_word(name, key, value, {"min_max", "standard"}, options_.scaler);
    } else if (key == "tensor_cost") {
      status = set_word(name, key, value, {"yes", "no"}, options_.tensor_cost);
    } else if (key == "readout") {
      status = set_word(name, key, value, {"sum", "log_sum", "mean"}, options_.readout);
    } else if (key == "encoder" && !system_.encoders.empty()) {
      status = set_word(name, key, value, system_.encoders, options_.encoder);
    } else {
      std::vector<std::string> known;
      for (const auto& [setting, unused] : system_.defaults.to_settings()) known.push_back(setting);
      status = Error{"there is no setting '" + key + "'", "settings of " + name, did_you_mean(key, known)};
    }
    if (!status.ok()) return status;
  }
  return {};
}

void GraphPredictor::make_net() {
  net_ = system_.make(options_,
                      {.names = features_.vocabulary().size(), .nodes = static_cast<int64_t>(features_.node_width())});
}

Result<TrainingLog> GraphPredictor::train(const DataSet& data, const TrainOptions& options) {
  auto device = device_named(options.device);
  if (!device) return device.error();
  const Status ready = options.start.empty() ? choose(options.settings) : load(options.start);
  if (!ready.ok()) return ready.error();
  device_ = *device;

  Fold fold = fold_for(data, options);
  const auto unmeasured = [&](uint32_t i) { return !(measured(data.examples()[i].targets, quantity_) > 0); };
  std::erase_if(fold.train, unmeasured);
  std::erase_if(fold.validation, unmeasured);
  const GraphFeatureChoice choice{
      .whole_iteration = options_.graph == "iteration",
      .tensor_cost = options_.tensor_cost == "yes",
      .scaler = options_.scaler == "standard" ? Scaler::Kind::standard : Scaler::Kind::min_max};
  if (options.start.empty()) features_ = GraphFeatures(choice, data, fold.train);
  std::vector<float> logarithms_measured;
  for (const uint32_t i : fold.train) {
    logarithms_measured.push_back(static_cast<float>(std::log(measured(data.examples()[i].targets, quantity_))));
  }
  const torch::Tensor wanted = torch::tensor(logarithms_measured).to(device_);
  torch::manual_seed(options.seed);
  if (options.start.empty()) {
    center_ = logarithms_measured.empty() ? 0 : wanted.mean().item<double>();
    make_net();
  }
  net_->to(device_);
  const GraphTensors graphs(features_.tables(data, fold.train), device_);
  const GraphTensors validation(features_.tables(data, fold.validation), device_);
  TrainingTask task{.module = net_.get(),
                    .samples = graphs.graphs(),
                    .loss =
                        [&](const torch::Tensor& batch) {
                          const std::span<const int64_t> chosen(batch.data_ptr<int64_t>(),
                                                                static_cast<size_t>(batch.numel()));
                          const torch::Tensor output = net_->forward(graphs.batch(chosen)) + center_;
                          return (output - wanted.index_select(0, batch.to(device_))).abs().mean();
                        },
                    .epochs = system_.epochs,
                    .batch = system_.batch,
                    .learning_rate = system_.learning_rate,
                    .clip = 1,
                    .decay = true};
  if (!fold.validation.empty()) {
    task.validation_error = [&] {
      std::vector<Prediction> predictions;
      for (const double value : logarithms(validation)) predictions.push_back(prediction_of(value));
      return evaluate(data, fold.validation, predictions, quantity_).all.mre;
    };
  }
  return run_training(task, options);
}

std::vector<double> GraphPredictor::logarithms(const GraphTensors& graphs) {
  std::vector<double> values;
  std::vector<int64_t> batch;
  int64_t nodes = 0;
  for (int64_t graph = 0; graph < graphs.graphs(); ++graph) {
    batch.push_back(graph);
    nodes += graphs.nodes_of(graph);
    if (nodes < kNodesAtOnce && graph + 1 < graphs.graphs()) continue;
    const torch::Tensor output = net_->forward(graphs.batch(batch)).to(torch::kCPU).contiguous();
    for (int64_t i = 0; i < output.numel(); ++i) {
      const double off = output.data_ptr<float>()[i];
      values.push_back(center_ + std::clamp(off, -kFarthestAnswer, kFarthestAnswer));
    }
    batch.clear();
    nodes = 0;
  }
  return values;
}

Prediction GraphPredictor::prediction_of(double logarithm) const {
  Prediction prediction;
  (quantity_ == Target::iteration_ms ? prediction.iteration_ms : prediction.peak_bytes) = std::exp(logarithm);
  return prediction;
}

std::vector<Prediction> GraphPredictor::predict(const DataSet& data, const Selection& examples) {
  CHECK(net_ != nullptr, "a predictor must be trained or loaded before it predicts");
  torch::NoGradGuard guard;
  net_->eval();
  std::vector<Prediction> predictions;
  for (const double value : logarithms(GraphTensors(features_.tables(data, examples), device_))) {
    predictions.push_back(prediction_of(value));
  }
  return predictions;
}

Status GraphPredictor::save(const std::string& folder) const {
  CHECK(net_ != nullptr, "a predictor must be trained before it is saved");
  const nlohmann::json described = {{"settings", options_.to_settings()},
                                    {"quantity", name_of(quantity_)},
                                    {"center", center_},
                                    {"features", features_.to_json()}};
  if (Status status = write_json(folder, "predictor.json", described); !status.ok()) return status;
  return save_module(*net_, (std::filesystem::path(folder) / "weights.pt").string());
}

Status GraphPredictor::load(const std::string& folder) {
  const auto described = read_json(folder, "predictor.json", {"settings", "quantity", "center", "features"});
  if (!described) return described.error();
  const auto settings = settings_from(*described);
  if (!settings) return settings.error().within(folder);
  if (const Status status = choose(*settings); !status.ok()) return status.error().within(folder);
  if (described->at("quantity") != name_of(quantity_) || !described->at("center").is_number()) {
    return Error{"these weights are of another quantity", folder, "name the predictor they were trained as"};
  }
  center_ = described->at("center").get<double>();
  auto features = GraphFeatures::from_json(described->at("features"));
  if (!features) return features.error().within(folder);
  features_ = std::move(*features);
  device_ = torch::kCPU;
  make_net();
  return load_module(*net_, (std::filesystem::path(folder) / "weights.pt").string());
}

NodeEncoderImpl::NodeEncoderImpl(const GraphWidths& widths, int64_t hidden) {
  name_ = register_module("name", torch::nn::Embedding(widths.names, hidden));
  node_ = register_module("node", torch::nn::Linear(widths.nodes, hidden));
  whole_ = register_module("whole",
                           torch::nn::Linear(torch::nn::LinearOptions(GraphFeatures::kWholeWidth, hidden).bias(false)));
  torch::NoGradGuard guard;
  name_->weight.mul_(0.3);  // as small as the columns of a linear layer are at the start
}

torch::Tensor NodeEncoderImpl::forward(const GraphBatch& batch) {
  return node_(batch.nodes) + name_(batch.names) + whole_(batch.whole).index_select(0, batch.graph_of);
}

ReadoutImpl::ReadoutImpl(int64_t hidden, const std::string& kind) : mean_(kind == "mean"), log_sum_(kind == "log_sum") {
  if (log_sum_) logs_ = register_module("logs", torch::nn::Linear(hidden, hidden));
  first_ = register_module("first", torch::nn::Linear(hidden, hidden));
  second_ = register_module("second", torch::nn::Linear(hidden, hidden));
  last_ = register_module("last", torch::nn::Linear(hidden, 1));
}

torch::Tensor ReadoutImpl::forward(const torch::Tensor& values, const torch::Tensor& graph_of, int64_t graphs) {
  const torch::Tensor added = log_sum_ ? logs_(values).clamp(-kFarthestLog, kFarthestLog).exp() : values;
  torch::Tensor pooled = torch::zeros({graphs, values.size(1)}, values.options()).index_add(0, graph_of, added);
  if (mean_) {
    const torch::Tensor ones = torch::ones({values.size(0)}, values.options());
    const torch::Tensor counts = torch::zeros({graphs}, values.options()).index_add(0, graph_of, ones);
    pooled = pooled / counts.clamp_min(1).unsqueeze(1);
  }
  pooled = log_sum_ ? pooled.clamp_min(kLeastSum).log() / kLogScale : torch::log1p(pooled);
  return last_(torch::relu(second_(torch::relu(first_(pooled))))).squeeze(1);
}

}  // namespace forerun::learn
