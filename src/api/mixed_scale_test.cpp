#include "api/mixed_scale.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

class MixedScale : public testing::Test {
 protected:
  static void SetUpTestSuite() { cost_models_ = new CostModels(*load_cost_models()); }
  static void TearDownTestSuite() { delete cost_models_; }

  static ScaleQuestion question(const std::string& gpus, const std::string& networks = "100gbe") {
    ScaleQuestion asked;
    asked.model = "resnet18";
    asked.gpu = gpus;
    asked.network = networks;
    asked.micro_batch = 64;
    return asked;
  }
  static MixedAnswer ask(const ScaleQuestion& asked, BatchShare share = BatchShare::even) {
    auto answer = scale_out_mixed(asked, share, *cost_models_);
    EXPECT_TRUE(answer.ok()) << answer.error().message();
    return answer ? *answer : MixedAnswer();
  }
  static scale::Step plain(const std::string& gpu, int64_t gpus) {
    ScaleQuestion asked = question(gpu);
    asked.gpus = {gpus};
    return scale_out(asked, *cost_models_)->steps.front();
  }
  static CostModels* cost_models_;
};
CostModels* MixedScale::cost_models_ = nullptr;

TEST_F(MixedScale, OfOneKindIsThePlainCluster) {
  const MixedAnswer mixed = ask(question("a100_80gb=16"));
  const scale::Step one = plain("a100_80gb", 16);
  EXPECT_NEAR(mixed.whole.steps[0].samples_per_second, one.samples_per_second, 1e-3 * one.samples_per_second);
  EXPECT_NEAR(mixed.whole.steps[0].efficiency, one.efficiency, 1e-3);
  EXPECT_EQ(mixed.kinds[0].waits.value, 0);
}

TEST_F(MixedScale, AllWaitForTheSlowestAndPartsAddUp) {
  const MixedAnswer mixed = ask(question("h200=8,t4=8"));
  const scale::Step& whole = mixed.whole.steps[0];
  EXPECT_EQ(whole.time, mixed.kinds[1].step.time);
  EXPECT_EQ(mixed.kinds[1].waits.value, 0);
  EXPECT_GT(mixed.kinds[0].waits.value, mixed.kinds[0].step.time.value);
  EXPECT_EQ(whole.parts.total(), whole.time);
  // As many T4 alone are no faster for the H200 beside them.
  EXPECT_NEAR(whole.samples_per_second, plain("t4", 16).samples_per_second, 0.05 * whole.samples_per_second);
  EXPECT_LT(whole.efficiency, 0.5);
}

TEST_F(MixedScale, BatchesBySpeedLeaveNobodyWaitingForLong) {
  const MixedAnswer even = ask(question("h200=8,t4=8"));
  const MixedAnswer fair = ask(question("h200=8,t4=8"), BatchShare::by_speed);
  EXPECT_GT(fair.kinds[0].step.plan.micro_batch, 4 * fair.kinds[1].step.plan.micro_batch);
  EXPECT_GT(fair.whole.steps[0].samples_per_second, 1.5 * even.whole.steps[0].samples_per_second);
  for (const KindStep& kind : fair.kinds)
    EXPECT_LT(kind.waits.value, fair.whole.steps[0].time.value / 4) << kind.kind.gpu;
  const int64_t samples = 8 * (fair.kinds[0].step.plan.micro_batch + fair.kinds[1].step.plan.micro_batch);
  EXPECT_NEAR(static_cast<double>(samples), 16 * 64, 16);
  EXPECT_EQ(fair.whole.steps[0].samples, samples);
  EXPECT_EQ(job_time({.samples = 10 * samples}, fair.whole.steps[0]).iterations, 10);
}

TEST_F(MixedScale, TheSlowestNetworkIsEverybodys) {
  const auto time = [&](const std::string& networks) {
    return ask(question("h200=8,a100=8", networks)).whole.steps[0].time;
  };
  EXPECT_EQ(time("h200=8xndr,a100=10gbe"), time("10gbe"));
  EXPECT_EQ(time("h200=10gbe,a100=8xndr"), time("10gbe"));
  EXPECT_LT(time("8xndr"), time("10gbe"));
}

TEST_F(MixedScale, WhatMakesNoSenseIsRefused) {
  const auto refused = [&](ScaleQuestion asked, const std::string& word) {
    const auto answer = scale_out_mixed(asked, BatchShare::even, *cost_models_);
    ASSERT_FALSE(answer.ok()) << asked.gpu;
    EXPECT_NE(answer.error().message().find(word), std::string::npos) << answer.error().message();
  };
  refused(question("h200=8,t4=4"), "whole number of nodes");
  refused(question("h200=8,h200=8"), "h200");
  refused(question("h200=0"), "no number of GPUs");
  refused(question("h200=x"), "no number of GPUs");
  refused(question("h201=8"), "h201");
  refused(question("h200=8,t4=8", "h200=8xndr"), "no network");
  refused(question("h200=8,t4=8", "h200=8xndr,t4=10gbe,v100=10gbe"), "v100");
  ScaleQuestion asked = question("h200=8,t4=8");
  asked.strategy = "pp=2";
  refused(asked, "data-parallel");
  asked = question("h200=8,t4=8");
  asked.global_batch = 8;
  refused(asked, "go round");
  asked.global_batch = 1000;
  refused(asked, "not even");
  asked = question("h200=8,t4=8");
  asked.search = true;
  refused(asked, "--search");
}

}  // namespace
}  // namespace forerun
