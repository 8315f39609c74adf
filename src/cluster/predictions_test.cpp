// What predictors know, and made-up jobs.
#include "cluster/predictions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cluster/synthetic.h"

namespace forerun::cluster {
namespace {

Predictor built_in(const std::string& text) { return **parse_built_in_predictor(text); }

TEST(Predictions, ErrorHasTheMeanThatWasAskedFor) {
  const Workload workload = synthetic_jobs({.jobs = 20000, .gpus = 100});
  for (const double percent : {8.0, 25.0, 60.0}) {
    const Durations predicted = predict_durations(workload, built_in("error:" + std::to_string(percent)), 3);
    double sum = 0;
    for (JobIndex job = 0; job < 20000; ++job) {
      sum += std::abs(
          static_cast<double>(predicted.of(job, 0).value) / static_cast<double>(workload.truth.of(job, 0).value) - 1);
    }
    EXPECT_NEAR(sum / 20000 * 100, percent, percent * 0.03);
  }
}

TEST(Predictions, NoneTellsNothingApartAndClassMeansTellClasses) {
  Workload workload;
  workload.jobs.resize(4);
  for (int i = 0; i < 4; ++i) workload.truth.add(Time(10 * (i + 1)));
  workload.jobs[2].kind = workload.jobs[3].kind = 0;
  workload.kinds = {"lm"};
  const Durations none = predict_durations(workload, built_in("none"), 1);
  const Durations classes = predict_durations(workload, built_in("class-mean"), 1);
  for (JobIndex job = 0; job < 4; ++job) {
    EXPECT_EQ(none.of(job, 0), Time(25));
    EXPECT_EQ(classes.of(job, 0), Time(job < 2 ? 15 : 35));
    EXPECT_EQ(predict_durations(workload, built_in("perfect"), 1).of(job, 0), workload.truth.of(job, 0));
  }
  EXPECT_FALSE(parse_built_in_predictor("error:x").ok());
  EXPECT_FALSE(parse_built_in_predictor("perfct")->has_value());
}

TEST(Predictions, LimitsAreWholeMinutesAndNeverTooLow) {
  const Workload workload = synthetic_jobs({.jobs = 5000, .gpus = 100});
  const Durations limits = predict_durations(workload, built_in("limits:3"), 7);
  double ratios = 0;
  for (JobIndex job = 0; job < 5000; ++job) {
    const Time truth = workload.truth.of(job, 0);
    const Time limit = limits.of(job, 0);
    EXPECT_GE(limit, truth);
    EXPECT_LT(limit.value, 3 * truth.value + 60 * kSecond.value);
    EXPECT_EQ(limit.value % (60 * kSecond.value), 0);
    ratios += static_cast<double>(limit.value - truth.value) / static_cast<double>(truth.value + 60 * kSecond.value);
  }
  EXPECT_GT(ratios / 5000, 0.5);
  EXPECT_TRUE(built_in("limits:3").is_random() && !built_in("none").is_random());
  for (const char* text : {"limits:", "limits:0.5", "limits:nan", "limits:inf", "limits:-1"}) {
    EXPECT_FALSE(parse_built_in_predictor(text).ok()) << text;
  }
  EXPECT_EQ((*parse_built_in_predictor("limits"))->kind, PredictorKind::stated_limits);
}

TEST(Predictions, SyntheticOptionsOutOfRangeAreRefused) {
  for (const char* text :
       {"jobs=0", "jobs=1.5", "gpus=0", "gpus=2.5", "seed=-1", "seed=1.5", "days=0", "days=nan", "load=0", "load=inf",
        "jobs=10,jobs=20", "jobs=10,", "jobs=100,gpus=1000,days=36500", "jobs=1000000,gpus=1,days=0.001"}) {
    EXPECT_FALSE(parse_synthetic(text).ok()) << text;
  }
  EXPECT_TRUE(parse_synthetic("jobs=1000000,gpus=10000,seed=1").ok());
  EXPECT_TRUE(parse_synthetic("jobs=100,gpus=8,seed=1,days=3,load=0.95").ok());
}

TEST(Predictions, MeasuredErrorsAreDrawnAsTheyAreSpread) {
  const Workload workload = synthetic_jobs({.jobs = 20000, .gpus = 100});
  const Predictor ets{PredictorKind::error_like, 0, "ets", {"a test", 100, 0.1, {0.5, 1.0, 1.0, 3.0}}};
  const Durations predicted = predict_durations(workload, ets, 7);
  int below = 0, exact = 0;
  for (JobIndex job = 0; job < 20000; ++job) {
    const double ratio =
        static_cast<double>(predicted.of(job, 0).value) / static_cast<double>(workload.truth.of(job, 0).value);
    ASSERT_GE(ratio, 0.499);
    ASSERT_LE(ratio, 3.001);
    below += ratio < 0.999 ? 1 : 0;
    exact += std::abs(ratio - 1) <= 0.001 ? 1 : 0;
  }
  EXPECT_NEAR(below, 20000 / 3, 300);
  EXPECT_NEAR(exact, 20000 / 3, 300);
  EXPECT_EQ(predict_durations(workload, ets, 7).of(17, 0), predicted.of(17, 0));
}

TEST(Predictions, WhatIsReallyPredictedIsNotDrawn) {
  Workload workload;
  workload.jobs.resize(3);
  workload.truth = Durations(2);
  for (const int64_t value : {100, 200, 300, 400, 500, 0}) workload.truth.add(value == 0 ? kNever : Time(value));
  const Predictor hybrid{PredictorKind::hybrid, 0, "hybrid", {"a test", 1, 0, {2, 2}}};
  const std::vector<Time> own = {Time(111), Time(0), Time(0), Time(0), Time(555), Time(9)};
  const Durations predicted = predict_durations(workload, hybrid, 1, own);
  EXPECT_EQ(predicted.of(0, 0), Time(111));
  EXPECT_EQ(predicted.of(0, 1), Time(400));  // an error of 2
  EXPECT_EQ(predicted.of(2, 0), Time(555));
  EXPECT_EQ(predicted.of(2, 1), kNever);  // it cannot run there
}

TEST(Synthetic, AsksForTheLoadThatWasAskedFor) {
  const Workload workload = synthetic_jobs({.jobs = 300000, .gpus = 10000, .seed = 2, .load = 0.7});
  double gpu_seconds = 0;
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    gpu_seconds += seconds(workload.truth.of(job, 0)) * workload.jobs[job].gpus;
  }
  const double share = gpu_seconds / (10000 * seconds(workload.jobs.back().arrival));
  EXPECT_NEAR(share, 0.7, 0.05);
  EXPECT_FALSE(parse_synthetic("jobs=0").ok());
  EXPECT_FALSE(parse_synthetic("jbos=3").ok());
  EXPECT_EQ(parse_synthetic("jobs=10000000,gpus=100000,seed=1")->jobs, 10000000);
}

TEST(StatedLimits, AreWhatTheSchedulerBelieves) {
  Workload workload;
  workload.jobs.resize(3);
  workload.truth = Durations(2);
  for (const int64_t seconds : {10, 20, 30, 40, 50, 60}) workload.truth.add(Time(seconds * kSecond.value));
  workload.truth.set(1, 1, kNever);
  workload.limits = {Time(100 * kSecond.value), kNever, Time(25 * kSecond.value)};
  const Predictor limits = **parse_built_in_predictor("limits");
  EXPECT_FALSE(limits.is_random());
  const Durations predicted = predict_durations(workload, limits, 1);
  EXPECT_EQ(predicted.of(0, 0), Time(100 * kSecond.value));
  EXPECT_EQ(predicted.of(1, 0), Time(100 * kSecond.value));  // none is stated: the longest of the others
  EXPECT_EQ(predicted.of(1, 1), kNever);
  EXPECT_EQ(predicted.of(2, 1), Time(25 * kSecond.value));  // also where it is too low
}

}  // namespace
}  // namespace forerun::cluster
