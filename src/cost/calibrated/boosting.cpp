#include "cost/calibrated/boosting.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace forerun {
namespace {

constexpr size_t kBins = 32;
constexpr double kLeastGain = 1e-6;

// The columns that differ, with their values as bins: row r has columns()[c] in bin[r * columns + c].
struct Binned {
  std::vector<uint16_t> columns;          // that differ
  std::vector<std::vector<float>> edges;  // of each: values below edges[b] are in bins up to b
  std::vector<uint8_t> bins;
};

Binned binned(std::span<const float> rows, size_t width, size_t count) {
  Binned result;
  std::vector<float> values(count);
  for (size_t column = 0; column < width; ++column) {
    for (size_t r = 0; r < count; ++r) values[r] = rows[r * width + column];
    std::sort(values.begin(), values.end());
    std::vector<float> edges;
    for (size_t b = 1; b < kBins; ++b) {
      const float edge = values[b * count / kBins];
      if (edge > values.front() && (edges.empty() || edge > edges.back())) edges.push_back(edge);
    }
    if (edges.empty()) continue;
    result.columns.push_back(static_cast<uint16_t>(column));
    result.edges.push_back(std::move(edges));
  }
  result.bins.resize(count * result.columns.size());
  for (size_t r = 0; r < count; ++r) {
    for (size_t c = 0; c < result.columns.size(); ++c) {
      const std::vector<float>& edges = result.edges[c];
      const float value = rows[r * width + result.columns[c]];
      result.bins[r * result.columns.size() + c] =
          static_cast<uint8_t>(std::upper_bound(edges.begin(), edges.end(), value) - edges.begin());
    }
  }
  return result;
}

struct Sums {
  double gradient = 0;
  double weight = 0;
};

struct Split {
  double gain = kLeastGain;
  size_t column = 0;  // of the binned ones
  size_t bin = 0;     // the last that goes left
  bool found = false;
};

double score(const Sums& sums, double ridge) { return sums.gradient * sums.gradient / (sums.weight + ridge); }

// Draws columns without any library, the same everywhere.
class ColumnDraw {
 public:
  std::vector<size_t> some_of(size_t count, double share) {
    std::vector<size_t> all(count);
    std::iota(all.begin(), all.end(), size_t{0});
    const size_t wanted = std::max<size_t>(1, static_cast<size_t>(share * static_cast<double>(count)));
    for (size_t i = 0; i < wanted && i < count; ++i) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      std::swap(all[i], all[i + (state_ >> 33U) % (count - i)]);
    }
    all.resize(std::min(wanted, count));
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  uint64_t state_ = 22;
};

class Grower {
 public:
  Grower(const Binned& table, std::span<const double> weights, const BoostingOptions& options)
      : table_(table), weights_(weights), options_(options), node_(weights.size()) {}

  // The nodes of one tree, which is added to `predicted`.
  std::vector<Forest::Node> tree(std::span<const double> gradients, std::span<double> predicted,
                                 const std::vector<size_t>& columns) {
    std::fill(node_.begin(), node_.end(), uint32_t{0});
    std::vector<Forest::Node> nodes(1);
    std::vector<uint32_t> open = {0};
    for (int level = 0; level < options_.depth && !open.empty(); ++level) {
      const std::vector<Split> splits = best_splits(gradients, open, columns);
      open = apply(splits, open, nodes);
    }
    if (nodes.size() == 1) return nodes;  // nothing to tell apart: the base stands
    std::vector<Sums> sums(nodes.size());
    for (size_t r = 0; r < node_.size(); ++r) {
      sums[node_[r]].gradient += gradients[r];
      sums[node_[r]].weight += weights_[r];
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].column != Forest::kLeaf) continue;
      nodes[i].value = static_cast<float>(options_.rate * sums[i].gradient / (sums[i].weight + options_.ridge));
    }
    for (size_t r = 0; r < node_.size(); ++r) predicted[r] += nodes[node_[r]].value;
    return nodes;
  }

 private:
  std::vector<Split> best_splits(std::span<const double> gradients, const std::vector<uint32_t>& open,
                                 const std::vector<size_t>& columns) {
    if (columns.empty()) return std::vector<Split>(open.size());  // rows that are all alike
    const size_t width = table_.columns.size();
    std::vector<int> place(open.back() + size_t{1}, -1);
    for (size_t i = 0; i < open.size(); ++i) place[open[i]] = static_cast<int>(i);
    histogram_.assign(open.size() * columns.size() * kBins, {});
    for (size_t r = 0; r < node_.size(); ++r) {
      if (node_[r] >= place.size() || place[node_[r]] < 0) continue;
      Sums* sums = &histogram_[static_cast<size_t>(place[node_[r]]) * columns.size() * kBins];
      const uint8_t* bins = &table_.bins[r * width];
      for (size_t c = 0; c < columns.size(); ++c, sums += kBins) {
        Sums& bin = sums[bins[columns[c]]];
        bin.gradient += gradients[r];
        bin.weight += weights_[r];
      }
    }
    std::vector<Split> splits(open.size());
    for (size_t i = 0; i < open.size(); ++i) {
      for (size_t c = 0; c < columns.size(); ++c) {
        try_column(&histogram_[(i * columns.size() + c) * kBins], columns[c], splits[i]);
      }
    }
    return splits;
  }

  void try_column(const Sums* bins, size_t column, Split& best) const {
    Sums all;
    for (size_t b = 0; b < kBins; ++b) {
      all.gradient += bins[b].gradient;
      all.weight += bins[b].weight;
    }
    Sums left;
    for (size_t b = 0; b < table_.edges[column].size(); ++b) {
      left.gradient += bins[b].gradient;
      left.weight += bins[b].weight;
      const Sums right{all.gradient - left.gradient, all.weight - left.weight};
      if (left.weight < options_.least_weight || right.weight < options_.least_weight) continue;
      const double gain = score(left, options_.ridge) + score(right, options_.ridge) - score(all, options_.ridge);
      if (gain > best.gain) best = {gain, column, b, true};
    }
  }

  // Splits nodes and moves rows to the children, which it gives.
  std::vector<uint32_t> apply(const std::vector<Split>& splits, const std::vector<uint32_t>& open,
                              std::vector<Forest::Node>& nodes) {
    std::vector<uint32_t> children;
    std::vector<const Split*> of(nodes.size(), nullptr);
    for (size_t i = 0; i < open.size(); ++i) {
      if (!splits[i].found) continue;
      of[open[i]] = &splits[i];
      const auto left = static_cast<uint32_t>(nodes.size());
      nodes[open[i]].column = table_.columns[splits[i].column];
      nodes[open[i]].value = table_.edges[splits[i].column][splits[i].bin];
      nodes[open[i]].left = static_cast<uint16_t>(left);
      nodes.resize(nodes.size() + 2);
      children.push_back(left);
      children.push_back(left + 1);
    }
    const size_t width = table_.columns.size();
    for (size_t r = 0; r < node_.size(); ++r) {
      const Split* split = of[node_[r]];
      if (split == nullptr) continue;
      const bool right = table_.bins[r * width + split->column] > split->bin;
      node_[r] = nodes[node_[r]].left + (right ? 1U : 0U);
    }
    return children;
  }

  const Binned& table_;
  std::span<const double> weights_;
  const BoostingOptions& options_;
  std::vector<uint32_t> node_;  // of each row
  std::vector<Sums> histogram_;
};

}  // namespace

Forest grow(std::span<const float> rows, size_t width, std::span<const double> targets, std::span<const double> weights,
            double base, const BoostingOptions& options) {
  const size_t count = targets.size();
  CHECK(rows.size() == count * width && weights.size() == count, "a target and a weight for each row are needed");
  Forest forest(static_cast<float>(base));
  if (count == 0) return forest;
  const Binned table = binned(rows, width, count);
  Grower grower(table, weights, options);
  ColumnDraw draw;
  std::vector<double> predicted(count, base);
  std::vector<double> gradients(count);
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t r = 0; r < count; ++r) gradients[r] = weights[r] * (targets[r] - predicted[r]);
    const auto columns =
        table.columns.empty() ? std::vector<size_t>() : draw.some_of(table.columns.size(), options.columns);
    const std::vector<Forest::Node> nodes = grower.tree(gradients, predicted, columns);
    if (nodes.size() == 1) continue;
    const Status added = forest.add_tree(nodes);
    CHECK(added.ok(), "a tree grown here has its children behind their parents");
  }
  return forest;
}

}  // namespace forerun
