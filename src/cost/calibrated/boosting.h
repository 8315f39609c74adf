// Grows a small forest from a few hundred to some thousand rows, without any library: what a machine's own readings teach
// (gpu_correction.h). Forests of the product are grown with XGBoost in lab/trees.
//
// Least squares, boosted: each tree is fitted to what those before it left, level by level, on columns cut into bins; leaves are
// held to nothing by `ridge`, so that few rows change little. Deterministic: columns are drawn by a generator of its own.
#pragma once

#include <cstdint>
#include <span>

#include "cost/trees/forest.h"

namespace forerun {

struct BoostingOptions {
  int rounds = 200;
  int depth = 5;
  double rate = 0.1;
  double ridge = 3;         // rows' worth of pull towards nothing, in each leaf
  double least_weight = 3;  // of the rows on either side of a split; the mean weight of a row is 1
  double columns = 0.5;     // share of them that a tree may ask for
};

// `rows` of `width` values each, one behind the other. The forest's base is `base`, whatever the targets, and all it says where rows are
// too few to be split.
Forest grow(std::span<const float> rows, size_t width, std::span<const double> targets, std::span<const double> weights,
            double base, const BoostingOptions& options = {});

}  // namespace forerun
