// What the hybrid cost model learns from, and that records without strides look to it like records with them.
#include "lab/training_data/measured_ops.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "derive/layout.h"
#include "derive/work.h"

namespace forerun {
namespace {

const std::string kRuns = FORERUN_DATA_DIR "/h200/runs-1.jsonl.zst";

const CostModels& cost_models_without_trees() {
  static const CostModels loaded = *load_cost_models({}, Trees::without);
  return loaded;
}

std::vector<RunRecord> first_runs(size_t count, Fields fields) {
  std::vector<RunRecord> runs;
  auto reader = RunRecordReader::open(kRuns, fields);
  EXPECT_TRUE(reader.ok());
  while (runs.size() < count) {
    auto next = reader->next();
    if (!next.ok() || !next->has_value()) break;
    if ((*next)->has_graph) runs.push_back(std::move(**next));
  }
  return runs;
}

OpSample product_sample() {
  OpSample sample;
  sample.op = "aten.mm.default";
  sample.inputs = {SampleTensor{DType::float32, {64, 32}, {}}, SampleTensor{DType::float32, {32, 16}, Shape{1, 32}}};
  sample.outputs = {SampleTensor{DType::float32, {64, 16}, {}}};
  sample.us = 9;
  sample.kernels = {{"gemm", 4.0, 1}, {"splitk", 2.0, 1}};
  return sample;
}

TEST(MeasuredOps, ASampleIsAnOpTimedAlone) {
  const Device device = *cost_models_without_trees().devices.find("h200");
  const auto ops = measured_ops(product_sample(), device, cost_models_without_trees().analytic);
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_TRUE(ops[0].alone);
  EXPECT_EQ(ops[0].us, 6);
  EXPECT_EQ(ops[0].span_us, 9);
  EXPECT_EQ(ops[0].kernels, 2);
  ASSERT_EQ(ops[0].feature_rows.size(), 1U);
  EXPECT_EQ(ops[0].names[0], "mm");
  OpSample failed = product_sample();
  failed.status = RunStatus::failed;
  EXPECT_TRUE(measured_ops(failed, device, cost_models_without_trees().analytic).empty());
}

TEST(MeasuredOps, OfARunAreThoseWithKernels) {
  ASSERT_TRUE(std::filesystem::exists(kRuns)) << kRuns;
  const Device device = *cost_models_without_trees().devices.find("h200");
  for (const RunRecord& record : first_runs(5, Fields::everything)) {
    const auto ops = measured_ops(record, device, cost_models_without_trees().analytic);
    double us = 0;
    for (const auto& op : ops) {
      us += op.us;
      EXPECT_LE(op.span_us, op.us * 1.0001) << record.run.id;
      EXPECT_FALSE(op.alone);
    }
    EXPECT_LE(us, record.measured->gpu_busy_us * 1.0001) << record.run.id;
    EXPECT_GT(us, 0.95 * (record.measured->gpu_busy_us - record.measured->unmatched_us)) << record.run.id;
  }
}

TEST(MeasuredOps, LayoutsAreInferredWhereThereAreNoStrides) {
  ASSERT_TRUE(std::filesystem::exists(kRuns)) << kRuns;
  int64_t seen = 0;
  int64_t wrong = 0;
  for (const RunRecord& record : first_runs(60, Fields::inputs)) {
    const Graph& graph = record.run.graph;
    LayoutTracker known(graph, record.run.setup.channels_last);
    LayoutTracker inferred(graph, record.run.setup.channels_last, LayoutTracker::Evidence::ops);
    for (const Op& op : graph.ops()) {
      const auto inputs = graph.inputs(op);
      if (op_class(graph.name(op)) != OpClass::view) {
        for (const TensorId id : inputs.first(std::min<size_t>(inputs.size(), 3))) {
          const Layout a = known.of(id);
          const Layout b = inferred.of(id);
          ++seen;
          wrong += a.permuted != b.permuted || a.channels_last != b.channels_last || a.expanded != b.expanded ? 1 : 0;
        }
      }
      known.pass(op);
      inferred.pass(op);
    }
  }
  EXPECT_GT(seen, 50'000);
  EXPECT_LT(wrong, seen / 100) << wrong << " of " << seen;
}

}  // namespace
}  // namespace forerun
