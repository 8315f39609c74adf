// What gangs lose by where they are.
#include "cluster/communication.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cluster/policies.h"
#include "cluster/simulator.h"
#include "derive/gradient_buckets.h"

namespace forerun::cluster {
namespace {

// Links without latency: all-reduce within a node of n GPUs 2 (n-1)/n b/B, between m nodes 2 (m-1)/m b/B.
CommunicationModel model_of(double within, double between, double oversubscription, int32_t per_node) {
  CommunicationModel model;
  model.pools.push_back({{.name = "in", .latency = Nanoseconds(0), .bandwidth = within},
                         {.name = "net", .latency = Nanoseconds(0), .bandwidth = between},
                         oversubscription,
                         per_node});
  return model;
}

constexpr Bytes kGigabyte{1'000'000'000};

TEST(Communication, ExposesWhatBackwardDoesNotHide) {
  const CommunicationModel model = model_of(100e9, 1e9, 4, 4);
  // 4 GPUs of a node: 2 x 3/4 x 1 / 100 = 15 ms, hidden behind a backward pass of 200 ms but for the last bucket.
  const auto all = static_cast<double>(kGigabyte.value), first = static_cast<double>(kFirstBucket.value);
  const double last = std::fmod(all - first, static_cast<double>(kBucket.value)) / all;
  EXPECT_NEAR(model.step(0.3, kGigabyte, 0, {4, 1, 1}), 0.3 + 0.015 * last, 1e-6);
  // Two nodes of 2: a ring over 4 GPUs takes 1.5 s. The network waits for the second bucket; what is left of the backward
  // pass's 200 ms from then on hides a part.
  const double bytes = 1 - first / all, hidden = 0.2 * (bytes - static_cast<double>(kBucket.value) / all);
  EXPECT_NEAR(model.step(0.3, kGigabyte, 0, {4, 2, 1}), 0.3 + 1.5 * bytes - hidden, 1e-6);
  // A quarter of the link across racks: now the network is never idle behind the first bucket.
  EXPECT_NEAR(model.step(0.3, kGigabyte, 0, {4, 2, 2}), 0.3 + 6 - 0.2 * bytes, 1e-6);
  EXPECT_NEAR(model.step(0.3, kGigabyte, 0, {1, 1, 1}), 0.3, 1e-9);  // alone
}

TEST(Communication, ReachesWhatCollectivesReach) {
  CommunicationModel model = model_of(100e9, 1e9, 1, 4);
  const double line = model.step(0.3, kGigabyte, 0, {4, 2, 1});
  model.efficiency.between = {.call_us = 100, .share = 0.5};
  const double bytes = 1e9 - static_cast<double>(kFirstBucket.value);
  const double buckets = std::ceil(bytes / static_cast<double>(kBucket.value));
  EXPECT_NEAR(model.step(0.3, kGigabyte, 0, {4, 2, 1}), line + 1.5 * bytes / 1e9 + 100e-6 * buckets, 1e-6);
}

TEST(Communication, FindsWhatAStepComputes) {
  const CommunicationModel model = model_of(100e9, 1e9, 1, 4);
  for (const double compute : {0.001, 0.3, 2.0, 10.0}) {
    for (const GangSpread spread : {GangSpread{4, 1, 1}, GangSpread{8, 2, 1}, GangSpread{4, 4, 1}}) {
      const double step = model.step(compute, kGigabyte, 0, spread);
      EXPECT_NEAR(model.compute_of(step, kGigabyte, 0, spread), compute, 1e-9);
    }
  }
  EXPECT_EQ(model.compute_of(1e-6, kGigabyte, 0, {4, 4, 1}), 0);
}

TEST(Communication, AGangThatIsSpreadOutRunsSlower) {
  Workload workload;
  workload.jobs.resize(3);
  workload.jobs[0].gpus = workload.jobs[1].gpus = 3;
  workload.jobs[2].gpus = 2;  // finds one GPU free on each of two nodes
  for (int i = 0; i < 3; ++i) workload.truth.add(Time(300 * kSecond.value));
  workload.traffic.assign(3, {kGigabyte, 1000});  // 0.3 s a step
  const auto model = std::make_shared<CommunicationModel>(model_of(100e9, 1e9, 1, 4));
  workload.communication = model;
  Cluster cluster;
  cluster.pools = {{.type = "gpu", .gpus = 8, .gpus_per_node = 4}};
  const Schedule schedule = simulate(workload, cluster, workload.truth, **make_policy("fifo"));
  EXPECT_EQ(schedule.finish[0], Time(300 * kSecond.value));
  const double slower = model->speed(0.3, kGigabyte, 0, {2, 2, 1});
  EXPECT_LT(slower, 0.3);
  EXPECT_NEAR(seconds(schedule.finish[2]), 300 / slower, 0.01);
  workload.traffic[2] = {};  // not known: as stated
  EXPECT_EQ(simulate(workload, cluster, workload.truth, **make_policy("fifo")).finish[2], Time(300 * kSecond.value));
}

}  // namespace
}  // namespace forerun::cluster
