#include "report/job_time.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(JobTime, IsToldInTheUnitThatReadsBest) {
  EXPECT_EQ(duration_text(0.01), "36 s");
  EXPECT_EQ(duration_text(0.91), "54.6 min");
  EXPECT_EQ(duration_text(31.42), "31.4 h");
  EXPECT_EQ(duration_text(297.6), "12.4 days");
  EXPECT_EQ(duration_text(24e6), "1,000,000 days");
}

TEST(JobTime, CountsSamplesInWholeIterations) {
  EXPECT_EQ((JobLength{.samples = 1000}.in_iterations(64)), 16);
  EXPECT_EQ((JobLength{.samples = 1024}.in_iterations(64)), 16);
  EXPECT_EQ((JobLength{.iterations = 7}.in_iterations(64)), 7);
  EXPECT_FALSE(check_job_length({.iterations = 1, .samples = 1}).ok());
  EXPECT_FALSE(check_job_length({.iterations = -1}).ok());
  EXPECT_FALSE(check_job_length({.samples = JobLength::kMost + 1}).ok());
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

}  // namespace
}  // namespace forerun
