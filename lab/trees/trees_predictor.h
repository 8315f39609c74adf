// trees: iteration time of traces as the authors of ETS take them, from boosted trees and two lanes. Forerun's best on
// that data; from the same columns that ETS gets (type, phase, data type, parameters, FLOPs, bytes, batch, size).
//
// 1. GPU time of an op: trees on its ratio to a roofline, with the op's figures as a product (op_figures.h). What is
//    learned is a power of that ratio between its logarithm and itself, a compromise between the few long ops, whose mean
//    must be right, and the many short ones. Each kind of op has its own forest. Convolutions take most of the time and
//    cuDNN chooses their algorithms by shape and type: grouped ones and others are told apart, each with a forest for
//    all and one for its type and phase, and the mean of the two counts.
//    Other ops also see what stands before and behind them (batch normalization does not show its size). Linear layers are
//    told apart into products and biases, and those in 64-bit floats go by tiles (linear_layers.h).
// 2. Gaps: two lanes give a first guess (trace_lanes.h).
// 3. Trees on what lies around the op (kinds and times of its neighbours, how far the host is ahead) learn the ratio of
//    the measured gap to that guess.
//
// On run records it works too, with FLOPs and bytes in place of the authors' parameters. Asking needs no XGBoost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cost/trees/forest.h"
#include "lab/dataset/features.h"
#include "lab/dataset/predictor.h"
#include "lab/trees/boosting.h"
#include "lab/trees/op_figures.h"
#include "lab/trees/trace_lanes.h"

namespace forerun::learn {

class TreesPredictor : public Predictor {
 public:
  [[nodiscard]] Settings settings() const override;
  Result<TrainingLog> train(const DataSet& data, const TrainOptions& options) override;
  std::vector<Prediction> predict(const DataSet& data, const Selection& examples) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  struct Options {
    int64_t rounds = 220;        // of convolutions
    int64_t other_rounds = 100;  // of other ops
    int64_t gap_rounds = 160;
    int64_t depth = 8;
    double power = 0.3;  // of the ratio to the roofline that is learned
    bool layers = true;  // linear layers are told apart (linear_layers.h)
  };
  // Numbers of an example's ops that the forests share.
  struct Ops {
    std::vector<LaneOp> lane;
    std::vector<OpFigures> figures;
    std::vector<uint32_t> rows;  // of the data set
  };
  Status set_options(const Settings& settings);
  Status fit(const DataSet& data, const Selection& examples, uint64_t seed);
  Status fit_times(const DataSet& data, const Selection& examples, uint64_t seed);
  Status fit_gaps(const DataSet& data, const Selection& examples, uint64_t seed);
  [[nodiscard]] Ops ops_of(const DataSet& data, const Example& example, bool measured) const;
  static void add_columns(const DataSet& data, const Ops& ops, size_t at, std::vector<float>& out);
  void set_times(const DataSet& data, Ops& ops) const;

  Options options_;
  OpVocabulary vocabulary_;
  std::map<uint32_t, Forest> times_;  // by part: see parts_of
  TraceLanes lanes_;
  Forest gaps_;
};

}  // namespace forerun::learn
