// `forerun scale --testbed --with driple`: handed over by forerun, answered by forerun-lab.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"
#include "lab/learn/predictors.h"

namespace forerun::cli {
namespace {

class ScaleWith : public testing::Test {
 protected:
  void SetUp() override {
    if (learn::predictors().empty()) GTEST_SKIP() << "built without LibTorch";
  }
};

TEST_F(ScaleWith, PutsTheNetworkBesideTheSimulation) {
  const std::string question = "scale resnet18 --testbed P1w2-10G --micro-batch 16 --json";
  const Outcome own = forerun_outcome(question);
  const Outcome both = forerun_outcome(question + " --with driple");
  ASSERT_EQ(both.code, 0) << both.out;
  const auto json = nlohmann::json::parse(both.out);
  EXPECT_EQ(json.at("metrics"), nlohmann::json::parse(own.out).at("metrics"));
  ASSERT_EQ(json.at("with").size(), 1U);
  const auto& driple = json["with"][0];
  EXPECT_EQ(driple.at("predictor"), "driple");
  EXPECT_EQ(driple.at("judged_errors").size(), 4U);
  for (const char* resource : {"gpu", "memory", "send", "receive"}) {
    for (const char* figure : {"idle_ms", "burst_ms", "amount"}) {
      const double told = driple.at("metrics").at(resource).at(figure).get<double>();
      const double simulated = json.at("metrics").at(resource).at(figure).get<double>();
      EXPECT_GT(told, 0.1 * simulated) << resource << " " << figure;
      EXPECT_LT(told, 10 * simulated) << resource << " " << figure;
    }
  }
}

TEST_F(ScaleWith, RefusesWhatCannotBeAsked) {
  expect_refused("scale resnet18 --testbed P1w2-10G --with dripple", 1, "driple");
  expect_refused("scale resnet18 --testbed P1w3-10G --with driple", 1, "it knows AR4-10G");
  expect_refused("scale resnet18 --testbed P1w2 --with driple", 1, "is no setting");
  expect_refused("scale no_such_model --testbed P1w2-10G --with driple", 1, "no_such_model");
  expect_refused("scale resnet18 --testbed P1w2-10G --gpu v100 --with driple", 1, "NVIDIA H200");
  expect_refused("scale resnet18 --testbed P1w2-10G --own-gpus --with driple", 1, "--own-gpus");
  expect_refused("scale resnet18 --testbed P1w2-10G --with driple --weights data", 1, "card.json");
  expect_refused("scale resnet18 --with driple", 2, "--testbed");
  expect_refused("scale resnet18 --testbed P1w2-10G --weights data", 2, "--with driple");
}

}  // namespace
}  // namespace forerun::cli
