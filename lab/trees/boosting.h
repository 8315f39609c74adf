// Growing forests with XGBoost: squared error or gamma deviance, histograms, rows and columns drawn at random for each tree. What is grown
// is a Forest and needs the library no more. Without XGBoost in the build, growing is an Error and all else works.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "cost/trees/forest.h"

namespace forerun {

// What a forest says of a row: its label, or the logarithm of its label (which is positive), such that the mean of the
// labels is right and not their median.
enum class BoostingTarget : uint8_t { label, logarithm };

struct BoostingOptions {
  BoostingTarget target = BoostingTarget::label;
  int64_t rounds = 300;
  int64_t depth = 8;
  double rate = 0.1;
  double rows = 0.8;        // share drawn for a tree
  double columns = 0.6;     // the same of columns
  double least_weight = 1;  // in a leaf; the mean weight of a row is 1
  double leaf_step = 0;     // leaves are multiples of it, which pack better; 0: as they are grown
  uint64_t seed = 0;
};

// For labels that are logarithms, or ratios around 1: a sum of some hundred leaves is off by a thousandth.
inline constexpr double kLeafStep = 1.0 / 8192;

// Whether this build can grow forests.
bool can_boost();

// Rows to learn from. Equal rows may be kept as one, with the weighted mean of their labels.
class BoostingTable {
 public:
  explicit BoostingTable(size_t width) : width_(width) {}

  void add(std::span<const float> row, double label, double weight);
  // The same, but a row that is there already is added to.
  void merge(std::span<const float> row, double label, double weight);

  [[nodiscard]] size_t size() const { return labels_.size(); }
  [[nodiscard]] size_t width() const { return width_; }
  [[nodiscard]] Result<Forest> grow(const BoostingOptions& options) const;

 private:
  size_t width_;
  std::vector<float> values_;
  std::vector<double> labels_;  // sums over weights
  std::vector<double> weights_;
  std::unordered_map<std::string, size_t> places_;  // of rows that were merged, by their bytes
};

}  // namespace forerun
