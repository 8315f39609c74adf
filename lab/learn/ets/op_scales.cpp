#include "lab/learn/ets/op_scales.h"

#include <algorithm>
#include <cmath>

#include "lab/trees/linear_layers.h"
#include "lab/trees/op_figures.h"
#include "lab/trees/trace_lanes.h"

namespace forerun::learn {
namespace {

constexpr std::string_view kConcatenation = "213";
constexpr double kHostGapUs = 50;
constexpr double kConcatBackward = 1.3;  // times the forward roofline: copies of parts of the gradient

}  // namespace

std::vector<OpScale> scales_of(const DataSet& data, const Example& example, std::span<const uint32_t> places) {
  std::vector<const OpRow*> rows;
  std::vector<std::string_view> names;
  std::vector<Phase> phases;
  std::vector<OpFigures> figures;
  std::vector<LaneOp> ops;
  const double multiprocessors = multiprocessors_of(example.device);
  for (const uint32_t place : places) {
    const OpRow& row = data.rows()[example.ops[place]];
    rows.push_back(&row);
    names.push_back(data.name_of_row(row));
    phases.push_back(row.phase);
    figures.push_back(figures_of(row, names.back(), multiprocessors));
    ops.push_back({.name = row.name.value, .forward = row.phase != Phase::backward});
  }
  set_biases(names, phases, figures);
  set_linear_layers(rows, names, multiprocessors, figures);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (names[i] == kLinear) ops[i].layer = layer_of(figures[i]);
  }
  const auto skipped = skipped_ops(ops);
  std::vector<OpScale> scales;
  for (size_t i = 0; i < figures.size(); ++i) {
    OpScale scale{.time_us = figures[i].roofline_us + figures[i].bias_us, .gap_us = kHostGapUs};
    for (const uint32_t op : skipped[i]) {
      if (names[op] == kConcatenation) scale.untraced_us += kConcatBackward * figures[op].roofline_us;
      if (names[op] == kLinear && ops[op].layer != ops[i].layer) scale.untraced_us += figures[op].backward_us;
    }
    scale.bias = figures[i].bias;
    scale.repeats = i > 0 && rows[i] == rows[i - 1];
    scales.push_back(scale);
  }
  return scales;
}

void add_scale_columns(const OpScale& scale, std::vector<float>& out) {
  out.push_back(static_cast<float>((std::log(scale.time_us) - 4) / 2));
  out.push_back(static_cast<float>((std::log1p(scale.untraced_us) - 1) / 2));
  out.push_back(scale.bias ? 1.0F : 0.0F);
  out.push_back(scale.repeats ? 1.0F : 0.0F);
}

}  // namespace forerun::learn
