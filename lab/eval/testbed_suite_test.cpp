#include "lab/eval/testbed_suite.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/scale_records.h"
#include "api/scale_resources.h"
#include "report/scale_records.h"

namespace forerun {
namespace {

// Workloads that nobody measured, simulated; then taken for measured.
TEST(TestbedSuite, RecordsOfWorkloads) {
  const auto cost_models = load_cost_models();
  ASSERT_TRUE(cost_models) << cost_models.error().message();
  const std::string path = testing::TempDir() + "/workloads.jsonl";
  const std::string head =
      R"({"schema":"resources/1","id":"a","status":"ok","family":"resnet","args":{"block":"basic","layers":[1,1,1,1]},)"
      R"("input":["image",16,3,96,1000],"run":{"precision":"fp32","optimizer":{"name":"SGD","impl":"foreach","lr":0.1},)"
      R"("channels_last":false},"model":"resnet10","setting":"P1w2-10G","mode":"sync"})";
  std::ofstream(path) << head << "\n{broken\n"
                      << R"({"schema":"run/1","id":"b"})"
                      << "\n";
  std::string simulated;
  int bad = 0;
  const WorkloadHandlers handlers{
      [&](const RecordedWorkload& workload) { simulated += simulated_record(workload) + "\n"; },
      [&](const Error&) { ++bad; }};
  ASSERT_TRUE(simulate_records({path}, "h200", *cost_models, *testbed_rates(), handlers));
  EXPECT_EQ(bad, 1);
  const auto record = nlohmann::json::parse(simulated);
  EXPECT_EQ(record["source"], "simulation");
  EXPECT_EQ(record["family"], "resnet");
  EXPECT_GT(record["metrics"]["send"]["amount"].get<double>(), 100);
  EXPECT_FALSE(evaluate_testbed({.records = {path}}, *cost_models));  // no metrics
  std::ofstream(path) << simulated;
  const auto accuracy = evaluate_testbed({.records = {path}}, *cost_models);
  ASSERT_TRUE(accuracy) << accuracy.error().message();
  EXPECT_EQ(accuracy->records, 1);
  for (const char* resource : scale::kResources) EXPECT_LT(accuracy->mean_error(resource, 1), 1e-4) << resource;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace forerun
