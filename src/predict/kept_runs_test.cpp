#include "predict/kept_runs.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

const CostModels& kept_models() {
  static const CostModels models = *load_cost_models();
  return models;
}

Device gpu_named(const std::string& name) { return *kept_models().devices.find(name); }

ModelRequest zoo_request(const std::string& model, int64_t batch) {
  ModelRequest request;
  request.model = model;
  request.batch = batch;
  return request;
}

TEST(KeptRuns, GivesWhatWasBuiltToWhoeverAsksForIt) {
  KeptRuns runs(build_zoo_run);
  const ModelRequest request = zoo_request("gpt2", 2);
  const auto first = runs.get(request, gpu_named("h200"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*runs.get(request, gpu_named("h200")), *first);
  EXPECT_EQ(*runs.get(request, gpu_named("h100_sxm")), *first);   // which gets the same kernels
  EXPECT_NE(*runs.get(request, gpu_named("a100_80gb")), *first);  // attention goes another way there
  std::vector<ModelRequest> others(5, request);
  others[0].batch = 3;
  others[1].settings = {{"length", "64"}};
  others[2].setup.precision = Precision::amp_bf16;
  others[3].default_optimizer = false;
  others[4].model = "distilbert-base-uncased";
  for (const ModelRequest& other : others) {
    const auto run = runs.get(other, gpu_named("h200"));
    const auto expected = build_zoo_run(other, gpu_named("h200"));
    ASSERT_TRUE(run.ok() && expected.ok());
    EXPECT_NE(*run, *first);
    EXPECT_EQ((*run)->graph.op_count(), expected->graph.op_count());
    EXPECT_EQ(predicted_times(**run, gpu_named("h200"), kept_models()).iteration,
              predicted_times(*expected, gpu_named("h200"), kept_models()).iteration);
  }
  EXPECT_EQ(*runs.get(request, gpu_named("h200")), *first);
}

TEST(KeptRuns, RefusesWhatTheDeviceCannotRun) {
  KeptRuns runs(build_zoo_run);
  ModelRequest request = zoo_request("resnet18", 8);
  request.setup.precision = Precision::fp16;
  ASSERT_TRUE(runs.get(request, gpu_named("v100_sxm2")).ok());
  const auto expected = build_zoo_run(request, gpu_named("p4"));
  const auto refused = runs.get(request, gpu_named("p4"));
  ASSERT_FALSE(refused.ok() || expected.ok());
  EXPECT_EQ(refused.error().message(), expected.error().message());
  EXPECT_FALSE(runs.get(zoo_request("no such model", 8), gpu_named("h200")).ok());
}

TEST(KeptRuns, KeepsNoMoreThanItMay) {
  const size_t ops = build_zoo_run(zoo_request("resnet18", 1), gpu_named("h200"))->graph.op_count();
  KeptRuns runs(build_zoo_run, 3 * ops);
  const auto first = runs.get(zoo_request("resnet18", 1), gpu_named("h200"));
  ASSERT_TRUE(first.ok());
  for (int64_t batch = 2; batch < 8; ++batch) {
    ASSERT_TRUE(runs.get(zoo_request("resnet18", batch), gpu_named("h200")).ok());
    ASSERT_LE(runs.ops(), 3 * ops);
    EXPECT_EQ(*runs.get(zoo_request("resnet18", 1), gpu_named("h200")), *first);  // asked again and again, it stays
  }
  for (int64_t batch = 2; batch < 5; ++batch)
    ASSERT_TRUE(runs.get(zoo_request("resnet18", batch), gpu_named("h200")).ok());
  EXPECT_NE(*runs.get(zoo_request("resnet18", 1), gpu_named("h200")), *first);
  ASSERT_TRUE(runs.get(zoo_request("resnet50", 1), gpu_named("h200")).ok());
  EXPECT_LE(runs.ops(), 3 * ops);
}

}  // namespace
}  // namespace forerun
