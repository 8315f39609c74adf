// What the hybrid cost model sees of an op: a row of numbers and the analytic time that it corrects.
//
// An op is one row, except a convolution's backward, which is up to three: gradients of data, weight and
// bias, run by different kernels. Every feature row belongs to one model (a kind of kernel), and all models see the same
// columns: general ones (work, extents, layouts), then some whose meaning depends on the model.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/analytic/constants.h"
#include "derive/layout.h"
#include "derive/work.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun::hybrid {

enum class Model : uint8_t {
  gemm,
  convolution,
  data_gradient,
  weight_gradient,
  attention,
  rnn,
  normalization,
  elementwise,
  reduction,
  softmax,
  pooling,
  embedding,
  indexing,
  copy,
  optimizer,
};
constexpr size_t kModelCount = static_cast<size_t>(Model::optimizer) + 1;
std::string_view name_of(Model model);

constexpr size_t kGeneral = 37;
// A general column: of an op that was timed alone, the share of its operands that the cache could have held, had the op before
// left them there; 0 within an iteration. What is predicted is the latter.
constexpr size_t kAlone = kGeneral - 1;
constexpr size_t kSpecific = 26;
constexpr size_t kColumns = kGeneral + kSpecific;

struct FeatureRow {
  Model model = Model::elementwise;
  std::string_view op;     // base name, or "bias_gradient"
  double analytic_us = 0;  // what the trees correct: waves of tiles, bytes, the floor of kernels, steps of an RNN
  double compute_us = 0;   // at the unit's peak rate
  double memory_us = 0;    // at the full bandwidth
  double kernels = 1;      // by the formula
  double launches = 0;     // kernels, where they are counted and not learned; 0: they are learned
  double steps = 1;        // of a recurrent layer, one after the other: most of its kernels run once a step
  bool in_fp8 = false;     // its times are those of fp8, its columns those of the same product in bfloat16
  std::array<float, kColumns> columns = {};  // column 0 is the op's number in the model's vocabulary, set later
};

// What a feature row's times follow from on any device.
struct RowWork {
  Model model = Model::elementwise;
  std::string_view op;
  Unit unit = Unit::fp32;  // that its products ask for
  OpWork work;             // of the row: of a convolution's backward, one gradient
  double flops = 0;
  double moved = 0;            // bytes
  bool channels_last = false;  // the images it reads

  bool operator==(const RowWork&) const = default;
};

struct RowTimes {
  double analytic_us = 0, compute_us = 0, memory_us = 0;  // as in FeatureRow
  double kernels = 1;
};
RowTimes times_on(const RowWork& row, const Device& device, Precision precision, const AnalyticConstants& constants);

// The feature rows of an op that runs on the GPU; none for views, marks and host ops. `layouts` has passed all ops before it.
// `works`: gets the work of each row too, where it is not null.
std::vector<FeatureRow> featurize(const Graph& graph, const Op& op, const OpWork& work, const LayoutTracker& layouts,
                                  const Device& device, const TrainingSetup& setup, const AnalyticConstants& constants,
                                  std::vector<RowWork>* works = nullptr);

}  // namespace forerun::hybrid
