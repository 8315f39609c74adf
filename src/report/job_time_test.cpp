#include "report/job_time.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun {
namespace {

TEST(JobTime, IsToldInTheUnitThatReadsBest) {
  EXPECT_EQ(duration_text(0.01), "36 s");
  EXPECT_EQ(duration_text(0.91), "54.6 min");
  EXPECT_EQ(duration_text(31.42), "31.4 h");
  EXPECT_EQ(duration_text(297.6), "12.4 days");
  EXPECT_EQ(duration_text(24e6), "1,000,000 days");
  EXPECT_EQ(energy_text(0.412), "412 Wh");
  EXPECT_EQ(energy_text(18.34), "18.3 kWh");
  EXPECT_EQ(energy_text(1234), "1.23 MWh");
  EXPECT_EQ(money_text(0.0123), "0.012");
  EXPECT_EQ(money_text(2.5), "2.50");
  EXPECT_EQ(money_text(12345.4), "12,345");
}

TEST(JobTime, CountsSamplesTokensAndEpochsInWholeIterations) {
  const IterationInput images{.samples = 64};
  const IterationInput text{.samples = 4, .tokens_each = 1000};
  EXPECT_EQ(*(JobLength{.samples = 1000}.in_iterations(images)), 16);
  EXPECT_EQ(*(JobLength{.samples = 1024}.in_iterations(images)), 16);
  EXPECT_EQ(*(JobLength{.iterations = 7}.in_iterations(images)), 7);
  EXPECT_EQ(*(JobLength{.tokens = 4001}.in_iterations(text)), 2);
  EXPECT_EQ(*(JobLength{.tokens = 4000}.in_iterations(text)), 1);
  EXPECT_EQ(*(JobLength{.epochs = 2.5, .dataset_size = 128}.in_iterations(images)), 5);
  EXPECT_FALSE((JobLength{.tokens = 4000}.in_iterations(images)).ok());
}

TEST(JobTime, LengthsThatMakeNoSenseAreRefused) {
  EXPECT_TRUE(check_job_length({}).ok());
  EXPECT_TRUE(check_job_length({.epochs = 90, .dataset_size = 1'281'167}).ok());
  const JobLength odd[] = {{.iterations = 1, .samples = 1},
                           {.tokens = 1, .epochs = 1, .dataset_size = 1},
                           {.iterations = -1},
                           {.samples = JobLength::kMost + 1},
                           {.tokens = -1},
                           {.epochs = 3},
                           {.dataset_size = 3},
                           {.epochs = std::nan(""), .dataset_size = 1},
                           {.epochs = 1e9, .dataset_size = 1'000'000'000}};
  for (const JobLength& length : odd) {
    const Status status = check_job_length(length);
    ASSERT_FALSE(status.ok()) << &length - odd;
    EXPECT_FALSE(status.error().remedy.empty());
  }
}

TEST(JobTime, PartsAreOfTheWholeJob) {
  const TimeParts iteration{.computation = Nanoseconds(30'000'000), .memory_access = Nanoseconds(10'000'000)};
  const JobTime job = job_time(90'000, iteration);
  EXPECT_DOUBLE_EQ(job.hours, 1);
  EXPECT_EQ(parts_text(job), "computation 45 min (75 %), memory access 15 min (25 %)");
  JsonWriter json;
  write_json(json, job);
  EXPECT_NE(json.take().find("\"computation\":0.75"), std::string::npos);
}

TEST(JobTime, EnergyFollowsFromPowerUseAndHours) {
  JobTime job;
  job.hours = 10;
  set_energy({.power_w = 0, .busy = 1}, job);
  EXPECT_FALSE(job.energy) << "a board whose power is not known";
  set_energy({.power_w = 700, .busy = 1}, job);
  EXPECT_DOUBLE_EQ(job.energy->expected, 7 * kBusyShare);
  EXPECT_DOUBLE_EQ(job.energy->high, 7);
  set_energy({.power_w = 700, .busy = 0}, job);
  EXPECT_DOUBLE_EQ(job.energy->high, 7 * kWaitingShare);
  EXPECT_DOUBLE_EQ(job.energy->low, job.energy->high) << "a board that only waits has no range of its own";
  job.gpus = 8;
  job.p10 = 9;
  job.p90 = 12;
  set_energy({.power_w = 700, .busy = 0.5}, job);
  EXPECT_DOUBLE_EQ(job.energy->high, 8 * 12 * 0.7 * (0.5 * kWaitingShare + 0.5));
  EXPECT_LT(job.energy->low, job.energy->expected);
  EXPECT_LT(job.energy->expected, job.energy->high);
}

TEST(JobTime, CostFollowsFromThePriceAndHasTheHoursRange) {
  JobTime job = job_time(90'000, {.computation = Nanoseconds(40'000'000)});
  EXPECT_FALSE(job.cost());
  job.price = 2.5;
  job.gpus = 4;
  EXPECT_DOUBLE_EQ(job.cost()->expected, 10);
  EXPECT_DOUBLE_EQ(job.cost()->high, 10);
  job.p10 = 0.5;
  job.p90 = 2;
  EXPECT_DOUBLE_EQ(job.cost()->low, 5);
  EXPECT_DOUBLE_EQ(job.cost()->high, 20);
  EXPECT_NE(job_text(job).find("cost 10.00 (5.00 to 20.00)"), std::string::npos) << job_text(job);
}

}  // namespace
}  // namespace forerun
