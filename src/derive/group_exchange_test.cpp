// Expert and context parallelism as passes over a forward graph.
#include <gtest/gtest.h>

#include <algorithm>

#include "derive/context_parallel.h"
#include "derive/expert_parallel.h"
#include "derive/iteration.h"
#include "derive/tensor_parallel.h"
#include "derive/work.h"
#include "zoo/zoo.h"

namespace forerun::derive {
namespace {

zoo::Model grouped_model(const char* name, const char* length = "64") {
  auto made = zoo::build(name, {{"layers", "2"}, {"length", length}, {"batch", "2"}});
  EXPECT_TRUE(made.ok()) << name << ": " << made.error().message();
  return std::move(*made);
}

Graph iteration_in_group(const Graph& forward, const InputSpec& input, const TrainingSetup& setup = {}) {
  auto graph = derive_iteration(forward, input, setup);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_TRUE(verify(*graph).ok());
  return std::move(*graph);
}

int64_t ops_named(const Graph& graph, Phase phase, std::string_view name) {
  return std::count_if(graph.ops().begin(), graph.ops().end(),
                       [&](const Op& op) { return op.phase == phase && graph.name(op) == name; });
}

double flops_of(const Graph& graph) {
  double sum = 0;
  for (const Op& op : graph.ops()) {
    const OpWork work = work_of(graph, op);
    if (op.phase != Phase::update && work.gemm_count > 0) sum += work.flops.value;
  }
  return sum;
}

TEST(ExpertParallel, RowsGoToTheExpertsAndBack) {
  for (const char* name : {"mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen3-30B-A3B"}) {
    const zoo::Model model = grouped_model(name);
    const auto part = expert_parallel(model.forward, 4);
    ASSERT_TRUE(part.ok()) << part.error().message();
    const Graph alone = iteration_in_group(model.forward, model.input, {.precision = Precision::bf16});
    const Graph graph = iteration_in_group(*part, model.input, {.precision = Precision::bf16});
    EXPECT_EQ(ops_named(graph, Phase::forward, kRowSwap), 2 * 2) << name;
    EXPECT_EQ(ops_named(graph, Phase::backward, kRowSwap), 2 * 2) << name;
    // As many rows as are sent are got: the work is the same, the weights are fewer.
    EXPECT_NEAR(flops_of(graph) / flops_of(alone), 1, 0.05) << name;
    EXPECT_LT(part->parameter_count(), model.forward.parameter_count()) << name;
    for (const Op& op : graph.ops()) {
      if (graph.name(op) != kRowSwap) continue;
      EXPECT_EQ(graph.shape(graph.outputs(op)[0])[0] % (2 * 64), 0) << name;  // tokens x experts of each
    }
  }
}

TEST(ExpertParallel, GoesWithATensorGroup) {
  const zoo::Model model = grouped_model("mistralai/Mixtral-8x7B-v0.1");
  const auto shared = tensor_parallel(model.forward, 2);
  ASSERT_TRUE(shared.ok()) << shared.error().message();
  const auto part = expert_parallel(*shared, 8);
  ASSERT_TRUE(part.ok()) << part.error().message();
  const Graph graph = iteration_in_group(*part, model.input);
  EXPECT_EQ(ops_named(graph, Phase::forward, kRowSwap), 2 * 2);
  EXPECT_EQ(ops_named(graph, Phase::forward, kGroupReduction), 2 * 2 + 1);
}

TEST(ExpertParallel, SaysWhatCannotBe) {
  const zoo::Model mixtral = grouped_model("mistralai/Mixtral-8x7B-v0.1");
  const auto odd = expert_parallel(mixtral.forward, 3);
  ASSERT_FALSE(odd.ok());
  EXPECT_NE(odd.error().message().find("ep=2 or ep=4"), std::string::npos) << odd.error().message();
  EXPECT_FALSE(expert_parallel(grouped_model("llama3_8b").forward, 2).ok());
  EXPECT_EQ(expert_parallel(mixtral.forward, 1)->op_count(), mixtral.forward.op_count());
  EXPECT_EQ(experts_of(mixtral.forward), 8);
  EXPECT_EQ(experts_of(grouped_model("llama3_8b").forward), 1);
}

TEST(ContextParallel, KeysAndValuesAreGathered) {
  const zoo::Model whole = grouped_model("llama3_8b", "256");
  const zoo::Model quarter = grouped_model("llama3_8b", "64");
  const auto part = context_parallel(quarter.forward, 4);
  ASSERT_TRUE(part.ok()) << part.error().message();
  const TrainingSetup setup{.precision = Precision::bf16};
  const Graph alone = iteration_in_group(whole.forward, whole.input, setup);
  const Graph graph = iteration_in_group(*part, quarter.input, setup);
  EXPECT_EQ(ops_named(graph, Phase::forward, kSequenceGathering), 2 * 2);
  EXPECT_EQ(ops_named(graph, Phase::backward, kSequenceScattering), 2 * 2);
  EXPECT_NEAR(4 * flops_of(graph) / flops_of(alone), 1, 0.01);
}

TEST(ContextParallel, RefusesWhatMixesTokensElsewhere) {
  for (const char* name : {"resnet50", "t5_small", "lstm"}) {
    const auto model = zoo::build(name, {{"batch", "1"}});
    ASSERT_TRUE(model.ok()) << name;
    EXPECT_FALSE(context_parallel(model->forward, 2).ok()) << name;
  }
}

}  // namespace
}  // namespace forerun::derive
