#include "lab/trees/linear_layers.h"

#include <gtest/gtest.h>

#include "lab/trees/trace_lanes.h"

namespace forerun::learn {
namespace {

// A linear layer's op for `batch` rows; without FLOPs it adds the bias.
OpRow linear_op(DType dtype, float batch, float units, float features, bool with_flops = true) {
  OpRow row;
  row.dtype = dtype;
  row.hyper[1] = batch;
  row.hyper[2] = row.hyper[12] = features;
  row.hyper[11] = units;
  row.set(Amount::flops, with_flops ? 2 * batch * units * features : batch * units);
  return row;
}

std::vector<OpFigures> told_apart(const std::vector<OpRow>& ops) {
  std::vector<const OpRow*> rows;
  std::vector<std::string_view> names;
  std::vector<OpFigures> figures;
  for (const OpRow& row : ops) {
    rows.push_back(&row);
    names.push_back(kLinear);
    figures.push_back(figures_of(row, kLinear));
  }
  set_linear_layers(rows, names, 40, figures);
  return figures;
}

TEST(LinearLayers, OneOpOfALayerIsItsProduct) {
  const OpRow product = linear_op(DType::float32, 64, 1000, 4096);
  const OpRow other = linear_op(DType::float32, 64, 100, 1000);
  const OpRow bias = linear_op(DType::float32, 64, 1000, 4096, false);
  const auto figures = told_apart({product, product, bias, other, bias, product});
  const bool biases[] = {false, true, true, false, true, false};
  for (size_t i = 0; i < figures.size(); ++i) {
    EXPECT_EQ(figures[i].bias, biases[i]) << i;
    EXPECT_EQ(figures[i].backward_us > 0, !biases[i]) << i;
  }
  EXPECT_DOUBLE_EQ(figures[0].roofline_us, figures_of(product, kLinear).roofline_us);
  EXPECT_NEAR(figures[1].roofline_us, 3 + 2 * 64 * 1000 * 4 / 0.25e6, 1e-6);
}

// Measured on a T4: 2692 us for 8 and 343 us for 128 rows.
TEST(LinearLayers, DoublesAreComputedInTiles) {
  const auto figures = told_apart({linear_op(DType::float64, 8, 4096, 1024), linear_op(DType::float64, 64, 4096, 1024),
                                   linear_op(DType::float64, 128, 1024, 256)});
  EXPECT_NEAR(figures[0].roofline_us, 2692, 300);
  EXPECT_NEAR(figures[1].roofline_us / figures[0].roofline_us, 1, 0.05);  // the same tiles
  EXPECT_NEAR(figures[2].roofline_us, 343, 40);
  const OpRow single = linear_op(DType::float32, 8, 4096, 1024);
  EXPECT_DOUBLE_EQ(told_apart({single})[0].roofline_us, figures_of(single, kLinear).roofline_us);
}

TEST(LinearLayers, BackwardThatIsTracedIsNotMissing) {
  // Product and bias of layer 7, then their backward as one op: nothing is left out behind it, but layer 9 is.
  const auto lane = [](bool forward, uint64_t layer, bool bias, double us) {
    return LaneOp{.name = 1, .forward = forward, .product = true, .layer = layer, .bias = bias, .gpu_us = us};
  };
  std::vector<LaneOp> ops = {{.name = 2, .gpu_us = 5},
                             lane(true, 7, false, 100),
                             lane(true, 7, true, 4),
                             lane(false, 7, false, 200),
                             {.name = 2, .forward = false, .gpu_us = 5}};
  const TraceLanes lanes;
  EXPECT_EQ(lanes.guess(ops)[3].untraced_us, 0);
  ops[1].layer = 9;
  EXPECT_EQ(lanes.guess(ops)[3].untraced_us, 2 * 100);
  ops[1].bias = true;
  EXPECT_EQ(lanes.guess(ops)[3].untraced_us, 0);
}

}  // namespace
}  // namespace forerun::learn
