#include "derive/repeated_blocks.h"

#include <gtest/gtest.h>

#include "derive/iteration.h"
#include "derive/work.h"
#include "graph/op_modules.h"
#include "zoo/zoo.h"

namespace forerun::derive {
namespace {

// FLOPs of all ops of the iteration without its update, with those of `block` so many times more.
double work_with(const Graph& graph, const std::string& block, int64_t others) {
  const std::vector<NameId> modules = op_modules(graph);
  const ModuleBlocks blocks(graph);
  double sum = 0;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::update) continue;
    const bool again = !block.empty() && blocks.of(graph.names()[modules[i]]) == block;
    sum += work_of(graph, op).flops.value * static_cast<double>(again ? 1 + others : 1);
  }
  return sum;
}

TEST(RepeatedBlocks, ThreeStandForAll) {
  for (const char* name : {"gpt2_medium", "bert_large", "llama2_7b", "Qwen/Qwen3-0.6B"}) {
    const auto model = zoo::build(name, {{"batch", "1"}, {"length", "128"}});
    ASSERT_TRUE(model.ok()) << model.error().message();
    for (const Checkpointing checkpointing : {Checkpointing::none, Checkpointing::block}) {
      const TrainingSetup setup{.precision = Precision::bf16, .checkpointing = checkpointing};
      const ShortForward brief = without_repeats(model->forward);
      ASSERT_GT(brief.others, 10) << name;
      EXPECT_LT(brief.graph.op_count(), model->forward.op_count() / 3) << name;
      EXPECT_TRUE(verify(brief.graph).ok()) << name;
      const auto whole = derive_iteration(model->forward, model->input, setup);
      const auto part = derive_iteration(brief.graph, model->input, setup);
      ASSERT_TRUE(whole.ok() && part.ok()) << name;
      const double ratio = work_with(*part, brief.block, brief.others) / work_with(*whole, "", 0);
      EXPECT_NEAR(ratio, 1, 1e-9) << name;
      const auto block = (model->forward.parameter_count() - brief.graph.parameter_count()) / brief.others;
      EXPECT_EQ(brief.graph.parameter_count() + brief.others * block, model->forward.parameter_count()) << name;
    }
  }
}

TEST(RepeatedBlocks, WhatDoesNotRepeatStays) {
  for (const char* name : {"resnet18", "densenet121", "lstm", "unet"}) {
    const auto model = zoo::build(name, {{"batch", "1"}});
    ASSERT_TRUE(model.ok()) << model.error().message();
    const ShortForward brief = without_repeats(model->forward);
    EXPECT_EQ(brief.others, 0) << name;
    EXPECT_EQ(brief.graph.op_count(), model->forward.op_count()) << name;
  }
}

}  // namespace
}  // namespace forerun::derive
