#include "lab/dataset/graph_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/dataset/test_data.h"

namespace forerun::learn {
namespace {

constexpr size_t kClasses = kOpClassCount;

// Two iterations: mm -> relu forward, one op backward; and mm alone.
DataSet two_graphs() {
  DataSet data;
  OpRow mm;
  mm.name = data.intern_name("aten.mm.default");
  mm.cls = OpClass::gemm;
  mm.set(Amount::flops, 1000);
  mm.set(Amount::weight_bytes, 64);
  mm.hyper[0] = 8;
  OpRow relu;
  relu.name = data.intern_name("aten.relu.default");
  relu.cls = OpClass::elementwise;
  relu.set(Amount::flops, 200);
  OpRow backward = relu;
  backward.phase = Phase::backward;

  Example first;
  first.batch = 4;
  first.device = "NVIDIA H200";
  first.ops = {data.intern(mm), data.intern(relu), data.intern(backward)};
  first.edges = {{0, 1, 16}, {0, 2, 99}};
  Example second = first;
  second.batch = 16;
  second.ops = {data.intern(mm)};
  second.edges = {};
  data.add(first);
  data.add(second);
  return data;
}

TEST(GraphFeatures, OfForwardOpsAreThoseExpected) {
  const DataSet data = two_graphs();
  const Selection all = {0, 1};
  const GraphFeatures features({}, data, all);
  const GraphTables tables = features.tables(data, all);
  EXPECT_EQ(tables.names, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(tables.nodes, (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(tables.first_node, (std::vector<size_t>{0, 2, 3}));
  // The edge to the backward op is gone; the other runs both ways.
  EXPECT_EQ(tables.sources, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(tables.targets, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(tables.first_edge, (std::vector<size_t>{0, 2, 2}));

  // Types (3, never varied), classes, 7 logarithms, 30 parameters, 7 amounts.
  ASSERT_EQ(features.node_width(), 3 + kClasses + 7 + 30 + 7 + 2);
  const std::span<const float> mm(tables.rows.data(), features.node_width());
  const std::span<const float> relu(tables.rows.data() + features.node_width(), features.node_width());
  EXPECT_EQ(mm[0], 0);
  EXPECT_EQ(mm[3 + static_cast<size_t>(OpClass::gemm)], 1);
  EXPECT_EQ(relu[3 + static_cast<size_t>(OpClass::gemm)], 0);
  EXPECT_EQ(relu[3 + static_cast<size_t>(OpClass::elementwise)], 1);
  const size_t logs = 3 + kClasses;
  EXPECT_EQ(mm[logs], 1);       // FLOPs: the most there are
  EXPECT_EQ(relu[logs], 0);     // the fewest
  EXPECT_EQ(mm[logs + 3], 1);   // weights
  EXPECT_EQ(mm[logs + 7], 1);   // the first parameter
  EXPECT_EQ(mm[logs + 37], 1);  // FLOPs as they are
  EXPECT_EQ(relu[logs + 37], 0);
}

TEST(GraphFeatures, LieBetweenWhatTrainingShowed) {
  const DataSet data = made_up_data(3, 6);
  const Selection train = select(data, Split::train);
  for (const bool whole : {false, true}) {
    const GraphFeatures features({.whole_iteration = whole}, data, train);
    const GraphTables tables = features.tables(data, train);
    for (const auto* table : {&tables.rows, &tables.edges, &tables.whole}) {
      for (const float value : *table) {
        ASSERT_GE(value, 0);
        ASSERT_LE(value, 1);
      }
    }
    size_t ops = 0;
    for (const uint32_t i : train) {
      for (const uint32_t row : data.examples()[i].ops) {
        ops += whole || data.rows()[row].phase == Phase::forward ? 1 : 0;
      }
    }
    EXPECT_EQ(tables.nodes.size(), ops);
  }
}

TEST(GraphFeatures, WithoutTensorCostKnowNoSizes) {
  const DataSet data = made_up_data(3, 6);
  const Selection train = select(data, Split::train);
  const GraphFeatures with({}, data, train);
  const GraphFeatures without({.tensor_cost = false}, data, train);
  EXPECT_EQ(with.node_width(), without.node_width() + 16);
  const GraphTables tables = without.tables(data, train);
  for (size_t i = 0; i < tables.edges.size(); i += GraphFeatures::kEdgeWidth) ASSERT_EQ(tables.edges[i + 2], 0);
}

TEST(GraphFeatures, AreReadBackTheSame) {
  const DataSet data = made_up_data(3, 4);
  const Selection train = select(data, Split::train);
  const Selection test = select(data, Split::test);
  const GraphFeatures features({.scaler = Scaler::Kind::standard}, data, train);
  const auto read = GraphFeatures::from_json(nlohmann::json::parse(features.to_json().dump()));
  ASSERT_TRUE(read.ok()) << read.error().message();
  const GraphTables before = features.tables(data, test);
  const GraphTables after = read->tables(data, test);
  EXPECT_EQ(before.rows, after.rows);
  EXPECT_EQ(before.edges, after.edges);
  EXPECT_EQ(before.whole, after.whole);
  EXPECT_EQ(before.names, after.names);
  nlohmann::json broken = features.to_json();
  broken["edges"]["offset"] = {1.0};
  broken["edges"]["factor"] = {1.0};
  EXPECT_FALSE(GraphFeatures::from_json(broken).ok());
  broken.erase("edges");
  EXPECT_FALSE(GraphFeatures::from_json(broken).ok());
}

}  // namespace
}  // namespace forerun::learn
