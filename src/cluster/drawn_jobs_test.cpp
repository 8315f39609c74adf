// Durations on further types and deadlines, drawn: within their ranges, the same for a seed, and never over what is stated.
#include "cluster/drawn_jobs.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun::cluster {
namespace {

Workload hundred_jobs() {
  Workload workload;
  for (int64_t i = 1; i <= 100; ++i) {
    workload.jobs.push_back({.arrival = Time(i * kSecond.value)});
    workload.truth.add(Time(1000 * i * kSecond.value));
  }
  return workload;
}

TEST(DrawnJobs, StayWithinTheirRanges) {
  const Cluster cluster = *parse_cluster("a100=4,v100=8");
  Workload workload = hundred_jobs();
  const auto made = draw(workload, cluster, *parse_draw("v100=1.4..2,deadlines=30,slack=1.2..3,seed=5"));
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->size(), 2U);
  ASSERT_EQ(workload.truth.types(), 2U);
  EXPECT_EQ(workload.gpu_types, (std::vector<std::string>{"a100", "v100"}));
  int due = 0;
  for (JobIndex job = 0; job < 100; ++job) {
    const double stated = 1000.0 * (job + 1);
    EXPECT_EQ(seconds(workload.truth.of(job, 0)), stated);
    EXPECT_GE(seconds(workload.truth.of(job, 1)), 1.4 * stated);
    EXPECT_LE(seconds(workload.truth.of(job, 1)), 2 * stated);
    if (workload.jobs[job].deadline == kNever) continue;
    ++due;
    const double after = seconds(workload.jobs[job].deadline - workload.jobs[job].arrival);
    EXPECT_GE(after, 1.2 * stated);
    EXPECT_LE(after, 6 * stated);
  }
  EXPECT_GT(due, 15);
  EXPECT_LT(due, 45);
  Workload again = hundred_jobs();
  (void)draw(again, cluster, *parse_draw("seed=5,slack=1.2..3,v100=1.4..2,deadlines=30"));
  Workload other = hundred_jobs();
  (void)draw(other, cluster, *parse_draw("seed=6,v100=1.4..2,deadlines=30"));
  int differ = 0;
  for (JobIndex job = 0; job < 100; ++job) {
    EXPECT_EQ(again.truth.of(job, 1), workload.truth.of(job, 1));
    EXPECT_EQ(again.jobs[job].deadline, workload.jobs[job].deadline);
    differ += other.truth.of(job, 1) != workload.truth.of(job, 1) ? 1 : 0;
  }
  EXPECT_GT(differ, 90);
}

TEST(DrawnJobs, RefuseWhatIsStatedOrUnknown) {
  const Cluster cluster = *parse_cluster("a100=4,v100=8");
  Workload due = hundred_jobs();
  due.jobs[3].deadline = Time(5);
  EXPECT_NE(draw(due, cluster, *parse_draw("deadlines=10")).error().message().find("state deadlines already"),
            std::string::npos);
  Workload typed = hundred_jobs();
  typed.gpu_types = {"a100", "v100"};
  EXPECT_NE(draw(typed, cluster, *parse_draw("v100=2")).error().message().find("by GPU type already"),
            std::string::npos);
  Workload plain = hundred_jobs();
  EXPECT_NE(draw(plain, cluster, *parse_draw("v10=2")).error().message().find("did you mean v100"), std::string::npos);
  EXPECT_FALSE(draw(plain, cluster, {.deadlines = 2}).ok());
  EXPECT_FALSE(draw(plain, cluster, {.slack = {3, 1}}).ok());
  EXPECT_FALSE(draw(plain, cluster, {.types = {{"v100", {NAN, 1}}}}).ok());
  for (const char* text : {"deadlines=101", "deadlines=x", "slack=3..1", "slack=0..2", "v100=", "v100=1..", "v100=nan",
                           "seed=-1", "seed=1.5", "v100=1..1e9", "deadlines=3,deadlines=4"}) {
    EXPECT_FALSE(parse_draw(text).ok()) << text;
  }
}

}  // namespace
}  // namespace forerun::cluster
