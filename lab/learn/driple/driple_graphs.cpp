#include "lab/learn/driple/driple_graphs.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace forerun::learn {
namespace {

constexpr double kFarthestGlobal = 4;  // deviations
constexpr double kLeastSpread = 1e-6;

Grouping grouping_named(const std::string& name) {
  if (name == "none") return Grouping::none;
  return name == "uniform" ? Grouping::uniform : Grouping::proportional;
}

GraphNodes nodes_named(const std::string& name) { return name == "all" ? GraphNodes::all : GraphNodes::ops; }

}  // namespace

std::vector<float> driple_globals(const ResourceWorkload& workload, const DripleOptions& options) {
  if (options.globals == "no") return {};
  std::vector<float> globals = workload.globals;
  if (options.globals == "costs") globals.insert(globals.end(), workload.columns.begin(), workload.columns.end());
  return globals;
}

DripleGraphs::DripleGraphs(const ResourceData& data, const Selection& workloads, const DripleOptions& options,
                           const DripleScales& scales) {
  std::map<uint32_t, size_t> known;  // graphs by iteration
  width_ = static_cast<int64_t>(scales.globals_center.size());
  for (const uint32_t i : workloads) {
    const ResourceWorkload& workload = data.workloads[i];
    const auto [place, fresh] = known.try_emplace(workload.example, known.size());
    graph_.push_back(place->second);
    if (fresh) {
      add_graph(group_ops(data.iterations, data.iterations.examples()[workload.example], scales.frequencies,
                          {.grouping = grouping_named(options.grouping),
                           .uniform = static_cast<size_t>(options.groups),
                           .nodes = nodes_named(options.nodes)}),
                scales);
    }
    const std::vector<float> globals = driple_globals(workload, options);
    for (size_t g = 0; g < scales.globals_center.size(); ++g) {
      const double spread = scales.globals_spread[g];
      const double value = g < globals.size() && spread > 0 ? (globals[g] - scales.globals_center[g]) / spread : 0;
      globals_.push_back(static_cast<float>(std::clamp(value, -kFarthestGlobal, kFarthestGlobal)));
    }
  }
}

void DripleGraphs::add_graph(const GroupedGraph& grouped, const DripleScales& scales) {
  std::vector<double> degree(grouped.features.size(), 1);
  for (const auto& [source, target] : grouped.edges) degree[target] += 1;
  const auto link = [&](uint32_t source, uint32_t target) {
    source_.push_back(source);
    target_.push_back(target);
    weight_.push_back(static_cast<float>(1 / std::sqrt(degree[source] * degree[target])));
  };
  for (const auto& [source, target] : grouped.edges) link(source, target);
  for (uint32_t node = 0; node < grouped.features.size(); ++node) {
    link(node, node);
    for (size_t f = 0; f < kGroupFeatures; ++f) {
      const double raw = f == 0 ? grouped.features[node][f] : std::log1p(grouped.features[node][f]);
      nodes_.push_back(static_cast<float>(raw / scales.features[f]));
    }
  }
  first_node_.push_back(static_cast<int64_t>(nodes_.size() / kGroupFeatures));
  first_edge_.push_back(static_cast<int64_t>(source_.size()));
}

double DripleGraphs::mean_nodes() const {
  return static_cast<double>(first_node_.back()) / static_cast<double>(std::max<size_t>(first_node_.size() - 1, 1));
}

std::array<double, kGroupFeatures> DripleGraphs::largest_features() const {
  std::array<double, kGroupFeatures> largest = {1e-9, 1e-9, 1e-9};
  for (size_t i = 0; i < nodes_.size(); ++i) {
    largest[i % kGroupFeatures] = std::max<double>(largest[i % kGroupFeatures], nodes_[i]);
  }
  return largest;
}

DripleBatch DripleGraphs::batch(const torch::Tensor& chosen, const torch::Device& device) const {
  std::vector<float> nodes, weight, globals;
  std::vector<int64_t> graph_of, source, target;
  int64_t before = 0;
  for (int64_t i = 0; i < chosen.numel(); ++i) {
    const auto workload = static_cast<size_t>(chosen.data_ptr<int64_t>()[i]);
    const size_t graph = graph_[workload];
    const int64_t from = first_node_[graph];
    const int64_t to = first_node_[graph + 1];
    const auto width = static_cast<int64_t>(kGroupFeatures);
    nodes.insert(nodes.end(), nodes_.begin() + width * from, nodes_.begin() + width * to);
    graph_of.insert(graph_of.end(), static_cast<size_t>(to - from), i);
    for (auto e = static_cast<size_t>(first_edge_[graph]); e < static_cast<size_t>(first_edge_[graph + 1]); ++e) {
      source.push_back(source_[e] + before);
      target.push_back(target_[e] + before);
      weight.push_back(weight_[e]);
    }
    const auto row = globals_.begin() + static_cast<int64_t>(workload) * width_;
    globals.insert(globals.end(), row, row + width_);
    before += to - from;
  }
  const auto floats = [&](const std::vector<float>& values, int64_t rows, int64_t columns) {
    return torch::tensor(values, torch::kFloat32).view({rows, columns}).to(device);
  };
  const auto whole = [&](const std::vector<int64_t>& values) {
    return torch::tensor(values, torch::kInt64).to(device);
  };
  return {.graphs = chosen.numel(),
          .nodes = floats(nodes, before, static_cast<int64_t>(kGroupFeatures)),
          .graph_of = whole(graph_of),
          .source = whole(source),
          .target = whole(target),
          .weight = floats(weight, static_cast<int64_t>(weight.size()), 1),
          .globals = floats(globals, chosen.numel(), width_)};
}

DripleScales fit_driple_scales(const ResourceData& data, const Selection& training, const DripleOptions& options) {
  DripleScales scales;
  Selection examples;
  for (const uint32_t i : training) examples.push_back(data.workloads[i].example);
  scales.frequencies = operator_frequencies(data.iterations, examples, nodes_named(options.nodes));
  const size_t width = driple_globals(data.workloads[training[0]], options).size();
  std::vector<double> sums(width), squares(width);
  for (const uint32_t i : training) {
    const std::vector<float> globals = driple_globals(data.workloads[i], options);
    for (size_t g = 0; g < width; ++g) {
      sums[g] += globals[g];
      squares[g] += static_cast<double>(globals[g]) * globals[g];
    }
  }
  const auto count = static_cast<double>(training.size());
  for (size_t g = 0; g < width; ++g) {
    const double mean = sums[g] / count;
    const double spread = std::sqrt(std::max(squares[g] / count - mean * mean, 0.0));
    scales.globals_center.push_back(mean);
    scales.globals_spread.push_back(spread < kLeastSpread * std::max(1.0, std::abs(mean)) ? 0 : spread);
  }
  scales.features = DripleGraphs(data, training, options, scales).largest_features();
  return scales;
}

}  // namespace forerun::learn
