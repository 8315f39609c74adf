#include "derive/tensor_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/iteration.h"
#include "derive/work.h"
#include "zoo/zoo.h"

namespace forerun::derive {
namespace {

struct SharedModel {
  const char* name;
  std::vector<std::pair<std::string, std::string>> settings;
  int64_t layers;
};

// Models small enough to be quick, shared in every way that the pass knows: fused and separate projections, gates, grouped
// keys and values, norms of heads, eager attention.
const std::vector<SharedModel>& shared_models() {
  static const std::vector<SharedModel> kModels = {
      {"gpt2_small", {{"layers", "3"}, {"length", "64"}}, 3},
      {"gpt2_small", {{"layers", "3"}, {"length", "64"}, {"attention", "eager"}}, 3},
      {"llama3_8b", {{"layers", "2"}, {"length", "64"}}, 2},
      {"bert_base", {{"layers", "2"}, {"length", "64"}}, 2},
      {"opt-125m", {{"layers", "2"}, {"length", "64"}}, 2},
      {"Qwen/Qwen3-0.6B", {{"layers", "2"}, {"length", "64"}}, 2},
      {"mistralai/Mixtral-8x7B-v0.1", {{"layers", "2"}, {"length", "64"}}, 2},
      {"Qwen/Qwen3-30B-A3B", {{"layers", "2"}, {"length", "64"}}, 2},
  };
  return kModels;
}

zoo::Model built(const SharedModel& model) {
  auto settings = model.settings;
  settings.emplace_back("batch", "2");
  auto made = zoo::build(model.name, settings);
  EXPECT_TRUE(made.ok()) << model.name << ": " << made.error().message();
  return std::move(*made);
}

Graph iteration_of(const Graph& forward, const InputSpec& input, const TrainingSetup& setup = {}) {
  auto graph = derive_iteration(forward, input, setup);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return std::move(*graph);
}

double product_flops(const Graph& graph) {
  double sum = 0;
  for (const Op& op : graph.ops()) {
    const OpWork work = work_of(graph, op);
    if (op.phase != Phase::update && work.gemm_count > 0) sum += work.flops.value;
  }
  return sum;
}

int64_t reductions(const Graph& graph, Phase phase) {
  return std::count_if(graph.ops().begin(), graph.ops().end(),
                       [&](const Op& op) { return op.phase == phase && graph.name(op) == kGroupReduction; });
}

TEST(TensorParallel, AGroupSharesAllProducts) {
  for (const SharedModel& model : shared_models()) {
    const zoo::Model whole = built(model);
    const Graph alone = iteration_of(whole.forward, whole.input);
    for (const int64_t gpus : {2, 4}) {
      const auto part = tensor_parallel(whole.forward, gpus);
      ASSERT_TRUE(part.ok()) << model.name << ": " << part.error().message();
      EXPECT_TRUE(verify(*part).ok()) << model.name;
      const Graph graph = iteration_of(*part, whole.input);
      EXPECT_TRUE(verify(graph).ok()) << model.name;
      // A vocabulary is padded, and a layer between norms stays whole.
      const double shared = static_cast<double>(gpus) * product_flops(graph) / product_flops(alone);
      EXPECT_GT(shared, 0.999) << model.name << " on " << gpus;
      EXPECT_LT(shared, 1.1) << model.name << " on " << gpus;
      const auto parameters = static_cast<double>(gpus * part->parameter_count());
      EXPECT_NEAR(parameters / static_cast<double>(whole.forward.parameter_count()), 1, 0.12) << model.name;
    }
  }
}

// Two sums forward and two backward in each layer, one behind the table of tokens, one before the scores of the vocabulary.
TEST(TensorParallel, ExchangesWhereMegatronDoes) {
  for (const SharedModel& model : shared_models()) {
    const zoo::Model whole = built(model);
    const auto part = tensor_parallel(whole.forward, 2);
    ASSERT_TRUE(part.ok()) << model.name;
    const Graph graph = iteration_of(*part, whole.input);
    EXPECT_EQ(reductions(graph, Phase::forward), 2 * model.layers + 1) << model.name;
    EXPECT_EQ(reductions(graph, Phase::backward), 2 * model.layers + 1) << model.name;
    // A block that runs again sums again, but for its last sum, which nobody reads a second time.
    const Graph again = iteration_of(*part, whole.input, {.checkpointing = Checkpointing::block});
    EXPECT_GE(reductions(again, Phase::backward), 3 * model.layers + 1) << model.name;
    EXPECT_LE(reductions(again, Phase::backward), 4 * model.layers + 1) << model.name;
  }
}

TEST(TensorParallel, AGroupOfOneIsTheModel) {
  const zoo::Model model = *zoo::build("gpt2_small", {{"layers", "2"}, {"batch", "1"}});
  EXPECT_EQ(tensor_parallel(model.forward, 1)->op_count(), model.forward.op_count());
}

TEST(TensorParallel, SaysWhatCannotBeShared) {
  const auto problem = [](const char* name, int64_t gpus) {
    const auto model = zoo::build(name, {{"batch", "1"}});
    EXPECT_TRUE(model.ok()) << model.error().message();
    const auto part = tensor_parallel(model->forward, gpus);
    return part.ok() ? std::string() : part.error().message();
  };
  const std::string heads = problem("gpt2_small", 8);  // 12 heads
  EXPECT_NE(heads.find("tp=6 or tp=12"), std::string::npos) << heads;
  EXPECT_NE(problem("resnet50", 2).find("leave out tp"), std::string::npos);
  EXPECT_NE(problem("lstm", 2).find("leave out tp"), std::string::npos);
}

}  // namespace
}  // namespace forerun::derive
