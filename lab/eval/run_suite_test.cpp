#include "lab/eval/run_suite.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun {
namespace {

const CostModels& run_cost_models() {
  static const CostModels models = [] {
    auto loaded = load_cost_models();
    CHECK(loaded.ok(), loaded.error().message());
    return std::move(*loaded);
  }();
  return models;
}

// Bands around what is reached (look at: mean 4.5 %, bias -1.2 %; judge: 12.6 %, -5.2 %): a worse table than before is a fault.
TEST(RunSuite, PublishedRunsAreAsNearAsBefore) {
  const auto accuracy = evaluate_runs({}, run_cost_models());
  ASSERT_TRUE(accuracy) << accuracy.error().message();
  EXPECT_TRUE(accuracy->refused.empty());
  const RunFigures look = figures_of(*accuracy, false), judge = figures_of(*accuracy, true);
  EXPECT_GE(look.runs, 60);
  EXPECT_GE(judge.runs, 35);
  EXPECT_LT(look.mean, 0.052);
  EXPECT_LT(look.median, 0.037);
  EXPECT_LT(std::abs(look.bias), 0.02);
  EXPECT_LT(judge.mean, 0.135);
  EXPECT_LT(judge.median, 0.12);
  EXPECT_LT(std::abs(judge.bias), 0.065);
  EXPECT_GE(look.covered, 0.9);
  EXPECT_GE(judge.covered, 0.75);
  for (const RunCase& c : accuracy->cases) {
    EXPECT_LE(c.low, c.predicted) << c.source << " " << c.model;
    EXPECT_GE(c.high, c.predicted) << c.source << " " << c.model;
  }
}

TEST(RunSuite, ASourceThatIsNotThereIsRefused) {
  EXPECT_FALSE(evaluate_runs({.source = "nobody"}, run_cost_models()));
  EXPECT_FALSE(evaluate_runs({.runs = "/nowhere.json"}, run_cost_models()));
}

}  // namespace
}  // namespace forerun
