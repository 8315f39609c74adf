#include "lab/calibrate/host_regression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace forerun {
namespace {

// Iterations of five made-up families on a host with known costs, whose speed a calibration tells.
class HostRegressionTest : public testing::Test {
 protected:
  HostRegressionTest() {
    truth_.op[0].fill(Nanoseconds(40'000));
    truth_.op[1].fill(Nanoseconds(10'000));
    truth_.op[2].fill(Nanoseconds(20'000));
    truth_.of(Phase::forward, OpClass::view) = Nanoseconds(5'000);
    truth_.of(Phase::backward, OpClass::view) = Nanoseconds(0);
    truth_.of(Phase::update, OpClass::optimizer) = Nanoseconds(150'000);
    truth_.further_kernel = Nanoseconds(12'000);
    truth_.foreach_tensor = Nanoseconds(2'000);
    truth_.parameter = Nanoseconds(20'000);
    truth_.host_op = Nanoseconds(8'000);
    truth_.iteration = Nanoseconds(1'000'000);
    std::mt19937_64 random(7);
    const auto up_to = [&](uint64_t most) { return static_cast<int64_t>(random() % most); };
    for (int i = 0; i < 120; ++i) {
      HostSample sample;
      sample.family = std::string(1, static_cast<char>('a' + i % 5));
      for (size_t phase = 0; phase < 3; ++phase) {
        sample.counts.op[phase][static_cast<size_t>(OpClass::elementwise)] = up_to(900);
        sample.counts.op[phase][static_cast<size_t>(OpClass::gemm)] = up_to(300);
      }
      for (size_t phase = 0; phase < 2; ++phase) {
        sample.counts.op[phase][static_cast<size_t>(OpClass::view)] = up_to(900);
      }
      sample.counts.op[2][static_cast<size_t>(OpClass::optimizer)] = up_to(60);
      sample.counts.further_kernels = up_to(900);
      sample.counts.foreach_tensors = up_to(2000);
      sample.counts.parameters = up_to(400);
      sample.counts.host_ops = up_to(400);
      const double slow = i % 3 == 0 ? 1.0 : 0.8 * std::sqrt(i % 3);
      if (i % 3 != 0) {
        // The host takes the root of what the reading of "add" says; "noise" says nothing.
        sample.calibration.forward = {{"noise", 5.0 + static_cast<double>(up_to(5))}, {"add", 10.0 * (i % 3)}};
      }
      sample.iteration_us = slow * microseconds(host_cost(sample.counts, truth_));
      sample.gpu_us = 0.2 * sample.iteration_us;
      samples_.push_back(sample);
    }
    options_.forward_kinds = {"noise", "add"};
    options_.backward_kinds = {};
    options_.strength = 0.01;
    options_.ridge = 0.01;
  }

  HostConstants truth_;
  std::vector<HostSample> samples_;
  HostRegressionOptions options_;
};

TEST_F(HostRegressionTest, FindsCostsAndScale) {
  const auto fit = calibrate_host_costs(samples_, options_);
  ASSERT_TRUE(fit.ok()) << fit.error().message();
  EXPECT_EQ(fit->samples, samples_.size());
  EXPECT_LT(fit->error, 0.02);
  EXPECT_NEAR(microseconds(fit->constants.of(Phase::forward, OpClass::gemm)), 40, 2);
  EXPECT_NEAR(microseconds(fit->constants.of(Phase::backward, OpClass::gemm)), 10, 2);
  EXPECT_NEAR(microseconds(fit->constants.further_kernel), 12, 1.5);
  EXPECT_NEAR(microseconds(fit->constants.of(Phase::update, OpClass::optimizer)), 150, 20);
  for (const ScaleReading& reading : fit->constants.scale.forward) {
    EXPECT_NEAR(reading.weight, reading.kind == "add" ? 0.5 : 0.0, 0.05) << reading.kind;
  }
  const HostCalibration fast{.forward = {{"noise", 7.0}, {"add", 10.0}}, .backward = {}};
  EXPECT_NEAR(host_slowness(fit->constants.scale, fast).value_or(0), 0.8, 0.02);
}

TEST_F(HostRegressionTest, AFewSlowIterationsDoNotPullTheOthers) {
  for (size_t i = 0; i < samples_.size(); i += 10) samples_[i].iteration_us *= 3;
  const auto fit = calibrate_host_costs(samples_, options_);
  ASSERT_TRUE(fit.ok()) << fit.error().message();
  EXPECT_NEAR(microseconds(fit->constants.of(Phase::forward, OpClass::gemm)), 40, 4);
  // Those 12 of 120 are wrong by two thirds; the others are right.
  EXPECT_LT(fit->error, 0.067 + 0.02);
}

TEST_F(HostRegressionTest, LeavesOutWhatTheGpuBounds) {
  for (size_t i = 0; i < 20; ++i) {
    samples_[i].gpu_us = 0.9 * samples_[i].iteration_us;
    samples_[i].iteration_us *= 5;
    samples_[i].gpu_us *= 5;
  }
  const auto fit = calibrate_host_costs(samples_, options_);
  ASSERT_TRUE(fit.ok()) << fit.error().message();
  EXPECT_EQ(fit->samples, 100U);
  EXPECT_LT(fit->error, 0.02);
  EXPECT_FALSE(calibrate_host_costs(std::span(samples_).first(20), options_).ok());
}

TEST_F(HostRegressionTest, HoldsOutOneFamilyAtATime) {
  // A family that takes twice as long as its counts say is predicted by the others, and so at half of its time.
  for (HostSample& sample : samples_) {
    if (sample.family == "c") sample.iteration_us *= 2;
  }
  const auto rows = hold_out_families(samples_, options_);
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  ASSERT_EQ(rows->size(), 5U);
  EXPECT_EQ((*rows)[2].samples, 24U);
  EXPECT_NEAR((*rows)[2].bias, -0.5, 0.03);
  EXPECT_LT((*rows)[0].error, 0.1);
}

}  // namespace
}  // namespace forerun
