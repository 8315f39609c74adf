#include "lab/trees/hybrid_training.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"
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

std::vector<FeatureRow> feature_rows(const Graph& graph) {
  const Op& op = graph.ops()[0];
  return featurize(graph, op, work_of(graph, op), LayoutTracker(graph, false), device(), {}, constants());
}

TEST(HybridTraining, LearnsWhatOpsTake) {
  if (!can_train()) GTEST_SKIP() << "this build has no XGBoost";
  std::vector<MeasuredOp> ops;
  for (int64_t m = 64; m <= 4096; m *= 2) {
    for (int64_t n = 64; n <= 4096; n *= 2) {
      for (int64_t k = 64; k <= 1024; k *= 2) {
        MeasuredOp op;
        op.feature_rows = feature_rows(product(m, n, k));
        op.names = {"mm"};
        op.us = op.feature_rows[0].analytic_us * (k >= 512 ? 3.0 : 1.5);
        op.kernels = k >= 512 ? 2 : 1;
        ops.push_back(op);
      }
    }
  }
  const auto residual_model = train(ops, {.rounds = 60, .depth = 4, .rate = 0.3});
  ASSERT_TRUE(residual_model.ok()) << residual_model.error().message();
  for (const int64_t k : {96, 768}) {
    const Graph graph = product(1000, 300, k);  // holds the name that the feature row refers to
    const auto feature_row = feature_rows(graph)[0];
    EXPECT_NEAR(residual_model->cost(feature_row).us / feature_row.analytic_us, k >= 512 ? 3.0 : 1.5, 0.15) << k;
    EXPECT_NEAR(residual_model->cost(feature_row).kernels, k >= 512 ? 2 : 1, 0.15) << k;
  }
}

}  // namespace
}  // namespace forerun::hybrid
