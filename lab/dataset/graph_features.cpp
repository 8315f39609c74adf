#include "lab/dataset/graph_features.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "lab/dataset/known_devices.h"
#include "lab/dataset/log_scale.h"

namespace forerun::learn {
namespace {

using Json = nlohmann::json;

const std::vector<Amount> kCosts = {Amount::flops,          Amount::bytes_read,  Amount::bytes_written,
                                    Amount::weight_bytes,   Amount::input_bytes, Amount::output_bytes,
                                    Amount::temporary_bytes};
// Gradients of weights and of outputs have the sizes of what they are gradients of.
constexpr Amount kGradients[] = {Amount::weight_bytes, Amount::output_bytes};

void add_whole(const Example& example, const Device& device, std::vector<float>& out) {
  const size_t first = out.size();
  out.resize(first + GraphFeatures::kWholeWidth);
  float* at = out.data() + first;
  *at++ = log2_of(example.batch);
  *at++ = log2_of(example.size);
  at[static_cast<size_t>(example.precision)] = 1;
  at += 3;
  at[static_cast<size_t>(example.optimizer.kind)] = 1;
  at += 6;
  at[static_cast<size_t>(example.optimizer.impl)] = 1;
  at += 3;
  *at++ = example.channels_last ? 1.0F : 0.0F;
  *at++ = log2_of(device.peak.fp32);
  *at++ = log2_of(static_cast<double>(device.board_memory.value));
  *at++ = log2_of(device.memory_bandwidth);
  *at++ = example.host_slowness > 0 ? static_cast<float>(std::log(example.host_slowness)) : 0.0F;
  *at++ = example.host_slowness > 0 ? 1.0F : 0.0F;
}

void add_edge(int64_t source, int64_t target, double bytes, double bandwidth, GraphTables& tables) {
  const auto raw = static_cast<float>(bytes);
  const float rate = log2_of(bandwidth);
  tables.sources.insert(tables.sources.end(), {source, target});
  tables.targets.insert(tables.targets.end(), {target, source});
  tables.edges.insert(tables.edges.end(), {1, 0, raw, log1p_of(bytes), rate});
  tables.edges.insert(tables.edges.end(), {0, 1, raw, log1p_of(bytes), rate});
}

// Sees or scales a table of rows, one after the other.
template <class Take>
void each_row(std::vector<float>& table, size_t width, Take take) {
  for (size_t at = 0; at < table.size(); at += width) take(std::span(table).subspan(at, width), at / width);
}

}  // namespace

GraphFeatures::GraphFeatures(const GraphFeatureChoice& choice, const DataSet& data, const Selection& examples)
    : choice_(choice) {
  encoder_ = FeatureEncoder({.name = false,
                             .phase = choice.whole_iteration,
                             .cls = true,
                             .amounts = choice.tensor_cost ? kCosts : std::vector<Amount>(),
                             .batch = false,
                             .size = false},
                            OpVocabulary::of(data, examples));
  nodes_ = Scaler(choice.scaler, columns_of_nodes());
  edges_ = Scaler(choice.scaler, kEdgeWidth);
  whole_ = Scaler(choice.scaler, kWholeWidth);
  GraphTables tables = unscaled(data, examples);
  std::vector<double> times(tables.names.size());
  for (const int64_t node : tables.nodes) ++times[static_cast<size_t>(node)];
  each_row(tables.rows, node_width(), [&](auto row, size_t i) { nodes_.see(row, times[i]); });
  each_row(tables.edges, kEdgeWidth, [&](auto row, size_t) { edges_.see(row); });
  each_row(tables.whole, kWholeWidth, [&](auto row, size_t) { whole_.see(row); });
  nodes_.finish();
  edges_.finish();
  whole_.finish();
}

size_t GraphFeatures::columns_of_nodes() const {
  const size_t gradients = choice_.tensor_cost ? std::size(kGradients) : 0;
  return encoder_.width() + encoder_.choice().amounts.size() + gradients;
}

void GraphFeatures::add_row(const DataSet& data, const Example& example, const OpRow& row, GraphTables& tables) const {
  const size_t first = tables.rows.size();
  tables.rows.resize(first + node_width());
  const std::span<float> out = std::span(tables.rows).subspan(first);
  encoder_.encode(data, example, row, out.first(encoder_.width()));
  size_t at = encoder_.width();
  for (const Amount amount : encoder_.choice().amounts) out[at++] = row.amount(amount);
  if (choice_.tensor_cost) {
    for (const Amount amount : kGradients) out[at++] = log1p_of(row.amount(amount));
  }
  tables.names.push_back(encoder_.vocabulary().index_of(data.name_of_row(row)));
}

void GraphFeatures::add_graph(const DataSet& data, const Example& example, double bandwidth,
                              std::vector<int64_t>& place_of_row, GraphTables& tables) const {
  std::vector<int64_t> place(example.ops.size(), -1);  // of an op among the nodes of this graph
  int64_t count = 0;
  for (size_t i = 0; i < example.ops.size(); ++i) {
    const OpRow& row = data.rows()[example.ops[i]];
    if (!choice_.whole_iteration && row.phase != Phase::forward) continue;
    int64_t& distinct = place_of_row[example.ops[i]];
    if (distinct < 0) {
      distinct = static_cast<int64_t>(tables.names.size());
      add_row(data, example, row, tables);
    }
    tables.nodes.push_back(distinct);
    place[i] = count++;
  }
  const auto bytes_of = [&](double bytes) { return choice_.tensor_cost ? bytes : 0.0; };
  for (const DataEdge& edge : example.edges) {
    if (place[edge.source] < 0 || place[edge.target] < 0) continue;
    add_edge(place[edge.source], place[edge.target], bytes_of(edge.bytes), bandwidth, tables);
  }
  if (example.edges.empty()) {
    for (int64_t i = 1; i < count; ++i) add_edge(i - 1, i, 0, bandwidth, tables);
  }
  tables.first_node.push_back(tables.nodes.size());
  tables.first_edge.push_back(tables.sources.size());
}

GraphTables GraphFeatures::unscaled(const DataSet& data, const Selection& examples) const {
  GraphTables tables;
  tables.node_width = node_width();
  tables.first_node = {0};
  tables.first_edge = {0};
  std::vector<int64_t> place_of_row(data.rows().size(), -1);
  const KnownDevices devices;
  for (const uint32_t i : examples) {
    const Example& example = data.examples()[i];
    const Device device = devices.find(example.device);
    add_graph(data, example, device.memory_bandwidth, place_of_row, tables);
    add_whole(example, device, tables.whole);
  }
  return tables;
}

GraphTables GraphFeatures::tables(const DataSet& data, const Selection& examples) const {
  GraphTables tables = unscaled(data, examples);
  each_row(tables.rows, node_width(), [&](auto row, size_t) { nodes_.apply(row); });
  each_row(tables.edges, kEdgeWidth, [&](auto row, size_t) { edges_.apply(row); });
  each_row(tables.whole, kWholeWidth, [&](auto row, size_t) { whole_.apply(row); });
  return tables;
}

Json GraphFeatures::to_json() const {
  return {{"whole_iteration", choice_.whole_iteration},
          {"tensor_cost", choice_.tensor_cost},
          {"ops", encoder_.to_json()},
          {"nodes", nodes_.to_json()},
          {"edges", edges_.to_json()},
          {"whole", whole_.to_json()}};
}

Result<GraphFeatures> GraphFeatures::from_json(const Json& json) {
  const Error broken{"the features of these weights cannot be read", "", "train the predictor again"};
  try {
    GraphFeatures features;
    features.choice_.whole_iteration = json.at("whole_iteration").get<bool>();
    features.choice_.tensor_cost = json.at("tensor_cost").get<bool>();
    auto encoder = FeatureEncoder::from_json(json.at("ops"));
    if (!encoder) return encoder.error();
    features.encoder_ = std::move(*encoder);
    for (auto [name, scaler] : {std::pair{"nodes", &features.nodes_}, std::pair{"edges", &features.edges_},
                                std::pair{"whole", &features.whole_}}) {
      auto read = Scaler::from_json(json.at(name));
      if (!read) return read.error();
      *scaler = std::move(*read);
    }
    if (features.nodes_.width() != features.columns_of_nodes() || features.edges_.width() != kEdgeWidth ||
        features.whole_.width() != kWholeWidth) {
      return broken;
    }
    features.choice_.scaler = features.nodes_.kind();
    return features;
  } catch (const Json::exception&) {
    return broken;
  }
}

}  // namespace forerun::learn
