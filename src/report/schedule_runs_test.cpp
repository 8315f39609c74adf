#include "report/schedule_runs.h"

#include <gtest/gtest.h>

#include "report/schedule.h"

namespace forerun {
namespace {

TEST(ScheduleRuns, PutTogetherAreTheReportOfOneProcess) {
  ScheduleRequest request;
  request.file = FORERUN_SOURCE_DIR "/examples/jobs.csv";
  request.cluster = *cluster::parse_cluster("a100=4,v100=8");
  request.policies = {*cluster::parse_policy("sjf"), *cluster::parse_policy("srtf")};
  request.predictor = *parse_predictor("error:30");
  request.repeat = 3;
  request.by = {cluster::BreakdownBy::user, cluster::BreakdownBy::size};
  const auto whole = schedule(request);
  ASSERT_TRUE(whole) << whole.error().message();
  const auto cases = ScheduleCases::read(request);
  ASSERT_TRUE(cases) << cases.error().message();
  ASSERT_EQ(cases->plan().size(), 8U);
  auto heading = read_schedule_heading(to_json(ScheduleHeading{cases->report(), cases->plan()}), "x");
  ASSERT_TRUE(heading) << heading.error().message();
  std::vector<SimulatedRun> runs(8);
  for (size_t number = 8; number-- > 0;) {  // in any order
    const auto run = cases->simulate(number);
    ASSERT_TRUE(run) << run.error().message();
    auto read = read_simulated_run(to_json(*run), "x");
    ASSERT_TRUE(read) << read.error().message();
    runs[number] = std::move(*read);
  }
  heading->report.outcomes = outcomes_of(heading->plan, std::move(runs));
  EXPECT_EQ(to_text(heading->report), to_text(whole->report));
  EXPECT_EQ(to_json(heading->report), to_json(whole->report));
}

TEST(ScheduleRuns, WhatIsNoneIsAnError) {
  for (const char* text : {"", "{}", "[]", R"({"jobs":"x"})"}) {
    EXPECT_FALSE(read_schedule_heading(text, "x").ok()) << text;
    EXPECT_FALSE(read_simulated_run(text, "x").ok()) << text;
  }
}

}  // namespace
}  // namespace forerun
