// Schedules held to known figures, every digit: Philly's second week of October 2017 on 480 GPUs. Those of fifo and sjf
// are published; the others come from a plain script that walks the whole queue at every event.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/needs_dataset.h"
#include "cluster/policies.h"
#include "cluster/simulator.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/sources.h"

namespace forerun::cluster {
namespace {

struct Published {
  const char* policy;
  double mean_jct, mean_wait, makespan;
};

class PhillyWeek : public testing::TestWithParam<Published> {};

TEST_P(PhillyWeek, MatchesKnownFigures) {
  NEEDS_DATASET(philly, "cluster/philly/philly.csv.gz");
  const auto cluster = parse_cluster("480");
  LoadOptions options;
  options.cluster = &*cluster;
  options.from = parse_date("2017-10-09");
  options.to = parse_date("2017-10-16");
  options.most_gpus = 64;
  const auto loaded = load_jobs(philly, "philly", options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Workload& workload = loaded->workload;
  auto policy = make_policy(GetParam().policy);
  ASSERT_TRUE(policy.ok());
  const Metrics metrics = metrics_of(simulate(workload, *cluster, workload.truth, **policy), workload, *cluster);
  const auto four_digits = [](double value) { return std::round(value * 1e4) / 1e4; };
  EXPECT_EQ(metrics.jobs, 12751);
  EXPECT_EQ(four_digits(metrics.mean_jct), GetParam().mean_jct);
  EXPECT_EQ(four_digits(metrics.mean_wait), GetParam().mean_wait);
  EXPECT_EQ(metrics.makespan, GetParam().makespan);
}

INSTANTIATE_TEST_SUITE_P(Golden, PhillyWeek,
                         testing::Values(Published{"fifo", 19465.0615, 11895.7708, 2422539},
                                         Published{"sjf", 11152.3079, 3583.0172, 2413860},
                                         Published{"fifo-skip", 14205.4276, 6636.1369, 2399281},
                                         Published{"sjf-skip", 10966.6524, 3397.3617, 2405278},
                                         Published{"srsf-skip", 10926.5586, 3357.2679, 2390105},
                                         Published{"easy", 19183.7930, 11614.5023, 2422518}));

}  // namespace
}  // namespace forerun::cluster
