// Gavel's linear program on cases whose optimum is known.
#include "cluster/gavel_program.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun::cluster {
namespace {

double time_of(const GavelAnswer& answer, size_t a, uint32_t type) {
  double time = 0;
  for (const GavelShare& share : answer.shares) {
    if (share.alone && share.a == a && share.type == type) time += share.time;
  }
  return time;
}

TEST(GavelProgram, JobsGetTheTypeTheyGainMostFrom) {
  // Gavel's own kind of example: one job is four times as fast on the first type, the other twice.
  const auto answer = solve_gavel({{1, 1, {4, 1}}, {1, 1, {2, 1}}}, {1, 1});
  ASSERT_TRUE(answer);
  // x of the first type to the first job: 4x + (1 - x) = 2(1 - x) + x, x = 1/4: both get 1.75.
  EXPECT_NEAR(answer->worst, 1.75, 1e-6);
  EXPECT_NEAR(time_of(*answer, 0, 0), 0.25, 1e-6);
  EXPECT_NEAR(time_of(*answer, 1, 0), 0.75, 1e-6);
}

TEST(GavelProgram, AClassEqualsItsJobsOneByOne) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<GavelClass> together, apart;
    for (int i = 0; i < 4; ++i) {
      const auto gpus = static_cast<int32_t>(random() % 2 + 1);
      const std::vector<double> rates = {1 + static_cast<double>(random() % 30) / 10,
                                         static_cast<double>(random() % 20) / 10};
      const auto jobs = static_cast<int>(random() % 3 + 1);
      together.push_back({static_cast<double>(jobs), gpus, rates});
      for (int job = 0; job < jobs; ++job) apart.push_back({1, gpus, rates});
    }
    EXPECT_NEAR(solve_gavel(together, {3, 2})->worst, solve_gavel(apart, {3, 2})->worst, 1e-5);
  }
}

TEST(GavelProgram, PairsShareAGpuWhereBothTogetherGain) {
  // Two jobs and one GPU: alone each gets half; side by side each runs at 0.8.
  const std::vector<GavelClass> two = {{1, 1, {1}}, {1, 1, {1}}};
  EXPECT_NEAR(solve_gavel(two, {1})->worst, 0.5, 1e-6);
  const auto packed = solve_gavel(two, {1}, [](size_t a, size_t b, uint32_t /*type*/) {
    return a == b ? std::nullopt : std::optional(std::pair(0.8, 0.8));
  });
  EXPECT_NEAR(packed->worst, 0.8, 1e-6);
  // The same two as one class of two jobs.
  const auto one = solve_gavel({{2, 1, {1}}}, {1}, [](size_t, size_t, uint32_t) { return std::pair(0.8, 0.8); });
  EXPECT_NEAR(one->worst, 0.8, 1e-6);
  // Unlike speeds are evened out by time alone: p in pairs, 1 - p of the slower one alone.
  const auto uneven = solve_gavel(two, {1}, [](size_t a, size_t b, uint32_t /*type*/) {
    return a == b ? std::nullopt : std::optional(std::pair(0.9, 0.5));
  });
  EXPECT_NEAR(uneven->worst, 0.9 / 1.4, 1e-6);  // 0.9 p = 0.5 p + (1 - p), p = 1 / 1.4
}

// Classes that are much alike, as jobs of which nothing is known are: the program has many optima.
std::vector<GavelClass> like_classes(std::mt19937_64& random, size_t types) {
  std::vector<GavelClass> classes(2 + random() % 12);
  for (GavelClass& one : classes) {
    one.jobs = static_cast<double>(1 + random() % 4);
    one.gpus = static_cast<int32_t>(1 + random() % 4);
    for (size_t type = 0; type < types; ++type) one.rates.push_back(static_cast<double>(random() % 3));
  }
  return classes;
}

TEST(GavelProgram, OneAnswerInWhateverOrderTheSolverSeesIt) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 150; ++round) {
    const size_t types = 1 + random() % 3;
    const std::vector<GavelClass> classes = like_classes(random, types);
    std::vector<int32_t> gpus(types);
    for (int32_t& count : gpus) count = static_cast<int32_t>(1 + random() % 12);
    const PairSpeeds pairs = [&](size_t a, size_t b, uint32_t type) -> std::optional<std::pair<double, double>> {
      if (classes[a].gpus != 1 || classes[b].gpus != 1 || (a + b + type) % 3 == 0) return std::nullopt;
      return std::pair(0.7, 0.7);
    };
    for (const bool packed : {false, true}) {
      const auto answer = solve_gavel(classes, gpus, packed ? pairs : PairSpeeds());
      for (uint64_t shuffle = 1; shuffle <= 4; ++shuffle) {
        const auto other = solve_gavel(classes, gpus, packed ? pairs : PairSpeeds(), {true, shuffle});
        ASSERT_EQ(answer.has_value(), other.has_value());
        if (!answer) continue;
        EXPECT_EQ(answer->worst, other->worst);
        ASSERT_EQ(answer->shares, other->shares) << "round " << round << (packed ? ", in pairs" : "");
      }
    }
  }
}

TEST(GavelProgram, WhatTheWorstOffCannotUseGoesToOthersTheEarlierFirst) {
  // One job can use the first type only, and has half of it by right; of the second type the earlier of the others has
  // all.
  const auto answer = solve_gavel({{1, 1, {1, 0}}, {1, 2, {0, 1}}, {1, 2, {0, 1}}}, {1, 3});
  ASSERT_TRUE(answer);
  EXPECT_NEAR(answer->worst, 0.75, 1e-6);
  EXPECT_NEAR(time_of(*answer, 0, 0), 1, 1e-6);
  const auto spare = solve_gavel({{1, 1, {1, 1}}, {1, 1, {1, 1}}}, {1, 1});  // alike: the first gets the first type
  EXPECT_NEAR(time_of(*spare, 0, 0), 1, 1e-6);
  EXPECT_NEAR(time_of(*spare, 1, 1), 1, 1e-6);
}

TEST(GavelProgram, NobodyThatCanRunIsNoAnswer) {
  EXPECT_FALSE(solve_gavel({{1, 1, {0}}}, {1}));
  EXPECT_FALSE(solve_gavel({}, {1}));
}

}  // namespace
}  // namespace forerun::cluster
