#include "timeline/model_tasks.h"

#include <gtest/gtest.h>

#include "compile/compiled_iteration.h"
#include "derive/gradient_buckets.h"
#include "derive/iteration.h"
#include "timeline/simulator.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

Graph derived_resnet18() {
  const auto model = zoo::build("resnet18", {{"batch", "2"}, {"image", "64"}});
  EXPECT_TRUE(model.ok());
  auto graph = derive::derive_iteration(model->forward, model->input, TrainingSetup{}, {});
  EXPECT_TRUE(graph.ok());
  return std::move(*graph);
}

std::vector<OpCost> equal_costs(const Graph& graph) {
  std::vector<OpCost> costs(graph.op_count());
  for (OpCost& cost : costs) {
    cost.gpu = Nanoseconds(1000);
    cost.kernels = 1;
  }
  return costs;
}

TEST(ModelTasks, EveryParameterHasOneGradient) {
  const Graph graph = derived_resnet18();
  int64_t bytes = 0;
  const std::vector<OpGradient> gradients = op_gradients(graph);
  for (const OpGradient& gradient : gradients) bytes += gradient.bytes.value;
  EXPECT_EQ(gradients.size(), static_cast<size_t>(graph.parameter_tensors()));
  EXPECT_EQ(bytes, 4 * graph.parameter_count());
}

TEST(ModelTasks, GradientsAreReadyInTheOrderOppositeToTheirUse) {
  const Graph graph = derived_resnet18();
  const auto made = model_tasks(graph, equal_costs(graph), {});
  ASSERT_TRUE(made.ok()) << made.error().message();
  ASSERT_FALSE(made->gradients.empty());
  for (const TaskGradient& gradient : made->gradients) {
    EXPECT_EQ(made->tasks.phase(gradient.ready), StepPhase::backward);
    EXPECT_EQ(made->tasks.phase(gradient.used), StepPhase::forward);
    EXPECT_LT(gradient.used, gradient.ready);
  }
  EXPECT_GT(made->gradients.front().used, made->gradients.back().used);  // the classifier, the first convolution
  EXPECT_LT(made->gradients.front().ready, made->gradients.back().ready);
}

// A compiled backward pass is cut at DDP's buckets: those of a bucket are ready together, the first before the pass has ended.
TEST(ModelTasks, CompiledGradientsAreReadyBucketByBucket) {
  const Graph eager = derived_resnet18();
  const auto compiled = compile::compiled_iteration(eager, false);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message();
  const std::vector<OpGradient> gradients = op_gradients(compiled->graph, &compiled->parts);
  ASSERT_EQ(gradients.size(), op_gradients(eager).size());
  std::vector<Bytes> sizes;
  for (const OpGradient& gradient : gradients) sizes.push_back(gradient.bytes);
  const std::vector<size_t> ends = bucket_ends(sizes);
  ASSERT_GT(ends.size(), 2U);
  size_t first = 0;
  for (const size_t end : ends) {
    for (; first <= end; ++first) EXPECT_EQ(gradients[first].last, gradients[end].last);
    if (end + 1 < gradients.size()) {
      EXPECT_LT(gradients[end].last, gradients[end + 1].last);
    }
    EXPECT_TRUE(compiled->parts.inside[gradients[end].last]);
  }
  const std::vector<OpGradient> together = op_gradients(compiled->graph);
  EXPECT_LT(gradients.front().last, together.front().last) << "not once the graph has ended";
}

TEST(ModelTasks, TheStreamIsBusyForWhatTheOpsCost) {
  const Graph graph = derived_resnet18();
  std::vector<OpCost> costs = equal_costs(graph);
  costs[0].kernels = 0;
  costs[1].kernels = 3;
  const auto made = model_tasks(graph, costs, {.gap = Nanoseconds(10)});
  ASSERT_TRUE(made.ok());
  const auto ops = static_cast<int64_t>(graph.op_count()) - 1;
  EXPECT_EQ(made->tasks.size(), static_cast<size_t>(ops) + 1);
  EXPECT_EQ(simulate(made->tasks).end, Nanoseconds(1000 * ops + 10 * (ops - 1) + 20));
}

}  // namespace
}  // namespace forerun
