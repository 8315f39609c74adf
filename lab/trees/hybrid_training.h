// Grows the trees of the hybrid cost model from measured ops, with XGBoost.
//
// Rows are feature rows of ops (op_features.h): timed alone (op samples) and within iterations (run records). Equal rows are
// one, with the median of their times; an op weighs more the longer it takes and the more often it was seen. The backward
// of a convolution is measured as a whole in iterations: its time is shared between the gradients in the proportion that
// trees grown without it predict, and then the trees of the gradients are grown again with these.
#pragma once

#include <string>
#include <vector>

#include "base/work_control.h"
#include "cost/hybrid/hybrid.h"

namespace forerun::hybrid {

// One op as measured.
struct MeasuredOp {
  std::vector<FeatureRow> feature_rows;
  std::vector<std::string> names;  // of the feature rows' ops, kept here because feature rows only view them
  double us = 0;                   // of its kernels together
  double span_us = 0;              // while any of them ran; 0 where that is not known
  int kernels = 1;
  bool alone = false;  // an op sample
  std::string family;  // of the iteration that it is of
};

struct GrowthOptions {
  int rounds = 260;
  int depth = 7;
  double rate = 0.08;
  double least_weight = 2;  // of the rows in a leaf; the mean weight of a row is 1
  int seed = 1;
};

// Whether this build can: it was made with XGBoost.
bool can_train();

// Progress counts forests. An Error without XGBoost, or where there is nothing to learn from.
Result<ResidualModel> train(std::vector<MeasuredOp> ops, const GrowthOptions& options, const WorkControl& control = {});

}  // namespace forerun::hybrid
