// Summaries of what-ifs on cases made by hand: losses count as much as gains, and bases and batch sizes stand apart.
#include "lab/accuracy/whatif_accuracy.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace forerun {
namespace {

// A base of 100 ms, measured and predicted alike; the GPU is busy for half of everything.
WhatIfCase made(const std::string& variant, double measured, double predicted) {
  WhatIfCase c{.model = "net", .variant = variant};
  c.measured_base = c.predicted_base = {100, 50};
  c.measured = {measured, measured / 2};
  c.predicted = {predicted, predicted / 2};
  c.low_ms = 0.9 * predicted;
  c.high_ms = 1.1 * predicted;
  return c;
}

TEST(WhatIfAccuracy, CountsLossesAndFalsePromises) {
  const std::vector<WhatIfCase> cases = {
      made("gains", 80, 85),       // a gain of 20, predicted 15
      made("loses", 130, 97),      // a loss of 30, predicted as next to nothing
      made("promised", 104, 70),   // nothing measured to speak of, and a gain of 30 predicted
      made("no matter", 98, 101),  // noise either way
  };
  const WhatIfSummary sum = summary_of(cases);
  EXPECT_EQ(sum.measured_signs.all, 2);
  EXPECT_EQ(sum.measured_signs.right, 1);
  EXPECT_EQ(sum.predicted_signs.all, 2);
  EXPECT_EQ(sum.predicted_signs.right, 1);
  EXPECT_NEAR(sum.mean_gain_error, (0.05 + 0.33 + 0.34 + 0.03) / 4, 1e-12);
  EXPECT_NEAR(sum.largest_gain_error, 0.34, 1e-12);
  EXPECT_NEAR(sum.largest_gpu_gain_error, 0.34, 1e-12);
  EXPECT_EQ(sum.covered.right, 2);
  EXPECT_EQ(sum.covered.all, 4);
  // gains before promised and no matter, all before loses; promised and no matter are 6 points apart.
  EXPECT_EQ(sum.ranks.all, 6);
  EXPECT_EQ(sum.ranks.right, 3);
}

TEST(WhatIfAccuracy, KeepsBasesAndBatchSizesApart) {
  WhatIfAccuracy accuracy{.data = "here"};
  accuracy.cases = {made("base", 100, 120), made("amp", 80, 85), made("batch:factor=2", 200, 190)};
  accuracy.cases[0].kind = WhatIfKind::base;
  accuracy.cases[1].trained_on = true;
  accuracy.cases[2].kind = WhatIfKind::batch;
  accuracy.problems = {"net, tf32: no trace"};
  accuracy.scatter = {{"net", 3, 100, 130}};
  const std::string text = to_text(accuracy);
  EXPECT_NE(text.find("2 cases judged, 1 not"), std::string::npos) << text;
  EXPECT_NE(text.find("+20.0 %"), std::string::npos) << text;  // the base's own error
  EXPECT_NE(text.find("3 host-bound runs"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(to_json(accuracy));
  EXPECT_EQ(json["schema"], "forerun.eval.whatif/2");
  EXPECT_EQ(json["judged"], 2);
  EXPECT_EQ(json["not_judged"], 1);
  EXPECT_EQ(json["cases"].size(), 3U);
  std::map<std::string, nlohmann::json> sums;
  for (const auto& sum : json["summaries"]) sums[sum["of"]] = sum;
  EXPECT_EQ(sums.at("optimizations")["cases"], 1);
  EXPECT_EQ(sums.at("optimizations, models kept apart")["cases"], 0);
  EXPECT_NEAR(sums.at("batch sizes")["largest_gain_error"].get<double>(), 0.1, 1e-12);
  EXPECT_NEAR(sums.at("bases")["largest_error"].get<double>(), 0.2, 1e-12);
}

}  // namespace
}  // namespace forerun
