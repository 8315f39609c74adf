#include "derive/stage_forward.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/test_blocks.h"
#include "derive/work.h"

namespace forerun::derive::stage_test {
namespace {

// Where a block of the model begins.
size_t begin_of(const Graph& forward, const std::string& block) {
  for (size_t i = 0; i < forward.op_count(); ++i) {
    if (forward.module(forward.ops()[i]).starts_with(block)) return i;
  }
  return forward.op_count();
}

struct TwoStages {
  Graph whole = blocks_model(4);
  size_t cut = begin_of(whole, "layers.2");
  StageForward first = stage_forward(whole, 0, cut);
  StageForward last = stage_forward(whole, cut, whole.op_count());
};

Graph derived(const StageForward& stage, const StageSchedule& schedule, Precision precision = Precision::fp32) {
  const TrainingSetup setup{.precision = precision};
  Result<Graph> graph = derive_stage(stage, schedule, {.kind = InputKind::tokens}, setup);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  const Status status = verify(*graph);
  EXPECT_TRUE(status.ok()) << status.error().message();
  return std::move(*graph);
}

double flops_of(const Graph& graph) {
  double flops = 0;
  for (const Op& op : graph.ops()) {
    const OpWork work = work_of(graph, op);
    if (work.gemm_count > 0) flops += work.flops.value;
  }
  return flops;
}

TEST(StageForward, StagesShareTheModelOut) {
  const TwoStages stages;
  EXPECT_EQ(stages.first.graph.parameter_count() + stages.last.graph.parameter_count(), stages.whole.parameter_count());
  EXPECT_EQ(stages.first.graph.op_count() + stages.last.graph.op_count(), stages.whole.op_count());
  EXPECT_TRUE(stages.first.received.empty());
  EXPECT_EQ(stages.first.graph.results().size(), 1U);
  EXPECT_EQ(stages.last.received.size(), 1U);
  EXPECT_FALSE(stages.first.last);
  EXPECT_TRUE(stages.last.last);
}

TEST(StageForward, StagesMultiplyAsTheModelDoes) {
  const TwoStages stages;
  for (const Precision precision : {Precision::fp32, Precision::amp_bf16, Precision::bf16, Precision::amp_fp8}) {
    const double whole = flops_of(trained_blocks({.precision = precision}, 4, UpBias::without));
    EXPECT_DOUBLE_EQ(
        flops_of(derived(stages.first, {1, 1}, precision)) + flops_of(derived(stages.last, {1, 1}, precision)), whole);
  }
  EXPECT_DOUBLE_EQ(flops_of(derived(stages.first, {3, 5})), 5 * flops_of(derived(stages.first, {1, 1})));
}

TEST(StageForward, KeepsEveryMicroBatchInFlight) {
  const TwoStages stages;
  const int64_t one = kept_for_backward(derived(stages.first, {1, 6})),
                two = kept_for_backward(derived(stages.first, {2, 6}));
  EXPECT_GT(two, one);
  EXPECT_EQ(kept_for_backward(derived(stages.first, {4, 6})), one + 3 * (two - one));
  EXPECT_EQ(kept_for_backward(derived(stages.last, {1, 6})), kept_for_backward(derived(stages.last, {1, 1})));
}

TEST(StageForward, BackwardPassesFollowForwardPassesInTurn) {
  const TwoStages stages;
  const Graph graph = derived(stages.first, {3, 5});
  std::string phases;
  for (const Op& op : graph.ops()) {
    const char letter = op.phase == Phase::forward ? 'F' : op.phase == Phase::backward ? 'B' : 'U';
    if (phases.empty() || phases.back() != letter) phases += letter;
  }
  EXPECT_EQ(phases, "FBFBFBU");  // three forward passes; then one of each, twice; then what is left
}

}  // namespace
}  // namespace forerun::derive::stage_test
