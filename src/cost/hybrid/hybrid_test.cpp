#include "cost/hybrid/hybrid_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/data_dir.h"
#include "base/parallel.h"
#include "cost/analytic/constants.h"
#include "graph/graph_builder.h"

namespace forerun::hybrid {
namespace {

Device device() {
  Device d;
  d.name = "round";
  d.sm_count = 100;
  d.memory_bandwidth = 1e12;
  d.l2 = Bytes(1'000'000);
  d.peak.fp32 = 1e13;
  d.peak.tf32_tensor = 1e14;
  return d;
}

AnalyticConstants constants() {
  const auto folder = data_dir();
  EXPECT_TRUE(folder.ok());
  auto read = load_analytic_constants(*folder / "cost" / "analytic.json");
  EXPECT_TRUE(read.ok());
  return *read;
}

Graph product(int64_t m, int64_t n, int64_t k) {
  GraphBuilder builder;
  const auto tensor = [&](int64_t rows, int64_t columns) {
    return builder.add_tensor(builder.add_storage(Bytes(rows * columns * 4)), DType::float32, Shape{rows, columns},
                              Shape{columns, 1});
  };
  builder.add_op({.name = "aten.mm.default", .inputs = {{tensor(m, k), tensor(k, n)}}, .outputs = {{tensor(m, n)}}});
  return builder.finish();
}

Graph convolution_backward(const std::vector<bool>& mask, bool bias) {
  GraphBuilder builder;
  const auto tensor = [&](const Shape& shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return builder.add_tensor(builder.add_storage(Bytes(count * 4)), DType::float32, shape);
  };
  Attributes attributes;
  attributes.set("output_mask", mask);
  attributes.set("bias_sizes", Shape{bias ? 32 : 0});
  attributes.set("stride", Shape{1, 1});
  attributes.set("padding", Shape{1, 1});
  attributes.set("groups", int64_t{1});
  builder.add_op({.name = "aten.convolution_backward.default",
                  .inputs = {{tensor({8, 32, 14, 14}), tensor({8, 16, 14, 14}), tensor({32, 16, 3, 3})}},
                  .outputs = {{tensor({8, 16, 14, 14}), tensor({32, 16, 3, 3})}},
                  .attributes = &attributes});
  return builder.finish();
}

std::vector<FeatureRow> feature_rows(const Graph& graph) {
  const Op& op = graph.ops()[0];
  return featurize(graph, op, work_of(graph, op), LayoutTracker(graph, false), device(), {}, constants());
}

// A model of products that says "twice the analytic time, in four kernels, half of it side by side".
ResidualModel doubled() {
  ResidualModel residual_model;
  residual_model.gpu = "round";
  KernelModel& known = residual_model.models[static_cast<size_t>(Model::gemm)].emplace();
  known.ops = {"addmm", "mm"};
  for (Range& range : known.seen) range = {0, 64};
  known.forests = DeferredForests({.time = Forest(static_cast<float>(std::log(2.0))),
                                   .kernels = Forest(2),
                                   .span = Forest(static_cast<float>(std::log(0.5)))});
  return residual_model;
}

TEST(Hybrid, PiecesTogetherCostWhatTheyCostAlone) {
  const ResidualModel residual_model = doubled();
  std::vector<FeatureRow> list;
  std::vector<Graph> graphs;  // feature rows view the names of their ops
  for (const int64_t m : {64, 128, 4096}) graphs.push_back(product(m, 64, 32));
  for (const Graph& graph : graphs) list.push_back(feature_rows(graph).at(0));
  list.push_back(list[1]);
  list.back().op = "unheard_of";
  list.push_back(list[0]);
  list.back().steps = 35;  // of a recurrent layer: kernels are counted by step
  const std::vector<FeatureRowCost> together = residual_model.costs(list);
  ASSERT_EQ(together.size(), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(together[i].us, residual_model.cost(list[i]).us) << i;
    EXPECT_EQ(together[i].in_distribution, residual_model.cost(list[i]).in_distribution) << i;
  }
  EXPECT_NEAR(together[2].us, 2 * list[2].analytic_us, 1e-3);
  EXPECT_DOUBLE_EQ(together[3].us, list[3].analytic_us);
  EXPECT_DOUBLE_EQ(together[0].kernels, 4);
  EXPECT_DOUBLE_EQ(together[4].kernels, 140);
}

TEST(Hybrid, AGradientIsAPieceOfItsOwn) {
  EXPECT_EQ(feature_rows(convolution_backward({true, true, false}, false)).size(), 2U);
  EXPECT_EQ(feature_rows(convolution_backward({false, true, false}, false)).size(), 1U);
  const auto all = feature_rows(convolution_backward({true, true, true}, true));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].model, Model::data_gradient);
  EXPECT_EQ(all[1].model, Model::weight_gradient);
  EXPECT_EQ(all[2].model, Model::reduction);
}

TEST(Hybrid, CorrectsTheAnalyticTime) {
  const Graph graph = product(512, 512, 512);
  const auto plain = feature_rows(graph);
  const auto costs = hybrid_costs(graph, device(), {}, constants(), doubled());
  ASSERT_EQ(costs.size(), 1U);
  EXPECT_NEAR(static_cast<double>(costs[0].gpu.value), 2e3 * plain[0].analytic_us, 2);
  EXPECT_NEAR(static_cast<double>(costs[0].overlapped.value), 1e3 * plain[0].analytic_us, 2);
  EXPECT_EQ(costs[0].kernels, 4);
}

TEST(Hybrid, OnAnotherGpuAsMuchOfTheCorrectionCountsAsCarriesOver) {
  const Graph graph = product(2048, 2048, 2048);
  Device narrow = device();  // a tenth of the rate, on multiprocessors with fewer lanes
  narrow.name = "narrow";
  narrow.peak.fp32 = 1e12;
  narrow.clock_mhz = 1000;
  Device wide = device();
  wide.clock_mhz = 1000;
  const Op& op = graph.ops()[0];
  const auto there =
      featurize(graph, op, work_of(graph, op), LayoutTracker(graph, false), narrow, {}, constants())[0].analytic_us;
  std::optional<OtherGpu> other = OtherGpu{wide, {}};
  const auto whole = hybrid_costs(graph, narrow, {}, constants(), doubled(), other);
  EXPECT_NEAR(static_cast<double>(whole[0].gpu.value), 2e3 * there, 2);
  EXPECT_NEAR(static_cast<double>(whole[0].overlapped.value), 1e3 * there, 2);
  other->scale.carry[static_cast<size_t>(Carried::product)] = {0, 0.5};
  const auto half = hybrid_costs(graph, narrow, {}, constants(), doubled(), other);
  EXPECT_NEAR(static_cast<double>(half[0].gpu.value), std::sqrt(2.0) * 1e3 * there, 2);
  EXPECT_EQ(half[0].kernels, 4);
}

TEST(Hybrid, AnOpThatWasNeverSeenKeepsItsAnalyticTime) {
  ResidualModel residual_model = doubled();
  residual_model.models[static_cast<size_t>(Model::gemm)]->ops = {"bmm"};
  const Graph graph = product(512, 512, 512);
  const auto costs = hybrid_costs(graph, device(), {}, constants(), residual_model);
  EXPECT_NEAR(static_cast<double>(costs[0].gpu.value), 1e3 * feature_rows(graph)[0].analytic_us, 1);
  EXPECT_FALSE(costs[0].measured);
}

TEST(Hybrid, MarksShapesOutsideWhatWasSeen) {
  ResidualModel residual_model = doubled();
  EXPECT_TRUE(hybrid_costs(product(64, 64, 64), device(), {}, constants(), residual_model)[0].measured);
  for (Range& range : residual_model.models[static_cast<size_t>(Model::gemm)]->seen) range.high = 5;
  EXPECT_FALSE(hybrid_costs(product(4096, 4096, 64), device(), {}, constants(), residual_model)[0].measured);
}

TEST(Hybrid, IsReadAsItWasWritten) {
  const Result<std::string> bytes = to_bytes(doubled());
  ASSERT_TRUE(bytes.ok()) << bytes.error().message();
  const auto read = from_bytes(*bytes);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*to_bytes(*read), *bytes);
  const Graph graph = product(512, 512, 512);
  EXPECT_EQ(hybrid_costs(graph, device(), {}, constants(), *read)[0].gpu,
            hybrid_costs(graph, device(), {}, constants(), doubled())[0].gpu);
}

TEST(Hybrid, WhatIsBrokenIsToldWhenItIsRead) {
  const std::string bytes = *to_bytes(doubled());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(from_bytes(bytes.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(from_bytes(bytes + "x").ok());
  // Forests, which nobody has asked for yet, too.
  std::string flipped = bytes;
  flipped.back() ^= 1;
  const auto read = from_bytes(flipped);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().what.find("section gemm was changed"), std::string::npos) << read.error().what;
  EXPECT_FALSE(from_bytes(*packed_sections({{"head", head_to_bytes(doubled())}})).ok()) << "no forests";
}

TEST(Hybrid, ForestsAreUnpackedFromManyThreadsAtOnce) {
  const auto read = from_bytes(*to_bytes(doubled()));
  ASSERT_TRUE(read.ok());
  const Graph graph = product(512, 512, 512);
  std::vector<FeatureRow> rows = feature_rows(graph);
  std::vector<double> us(8);
  parallel_for(us.size(), 4, [&](size_t i) { us[i] = read->cost(rows[0]).us; });
  for (const double each : us) EXPECT_EQ(each, doubled().cost(rows[0]).us);
}

}  // namespace
}  // namespace forerun::hybrid
