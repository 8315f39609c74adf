// What of a profiled host time is believed, and which share of the GPU a kernel stands for.
#include "whatif/host_calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "whatif/device_share.h"
#include "whatif/kernel_insertion.h"

namespace forerun::whatif {
namespace {

TEST(HostShiftTest, TheUsualSlowdownShiftsNothingAndAnotherMachineEverything) {
  const double usual = std::exp(kProfiledOverModel);
  EXPECT_NEAR(host_shift(usual), 0, 1e-12);
  // Within the scatter a fifth.
  EXPECT_NEAR(host_shift(usual * 1.1), kPersistent * std::log(1.1), 1e-12);
  EXPECT_NEAR(host_shift(usual / 1.1), -kPersistent * std::log(1.1), 1e-12);
  // A host three times as slow: all but what scatter hides.
  const double hidden = (1 - kPersistent) * kUsualScatter;
  EXPECT_NEAR(host_shift(usual * 3), std::log(3.0) - hidden, 1e-12);
  for (double ratio = 0.2; ratio < 8; ratio *= 1.05) EXPECT_LT(host_shift(ratio), host_shift(ratio * 1.05));
}

Trace kernels_at(const std::vector<std::pair<int64_t, int64_t>>& intervals) {
  Trace trace;
  for (size_t i = 0; i < intervals.size(); ++i) {
    trace.lanes.push_back({TraceLane::Kind::gpu_stream, 0, static_cast<int64_t>(i), NameId()});
    trace.events.add({.start = intervals[i].first,
                      .duration = intervals[i].second - intervals[i].first,
                      .name = trace.names.intern("kernel"),
                      .kind = EventKind::kernel,
                      .lane = static_cast<LaneIndex>(i)});
  }
  return trace;
}

TEST(DeviceShareTest, KernelsSideBySideShareTheGpu) {
  // 0-100 alone for 50, then two for 50; 50-150 alone again for 50; 200-210 alone; nothing between.
  const std::vector<float> shares = device_shares(kernels_at({{0, 100}, {50, 150}, {200, 210}}));
  EXPECT_NEAR(shares[0], 0.75, 1e-6);
  EXPECT_NEAR(shares[1], 0.75, 1e-6);
  EXPECT_NEAR(shares[2], 1, 1e-6);
  // The parts add up to the time that anything ran.
  EXPECT_NEAR(100 * shares[0] + 100 * shares[1] + 10 * shares[2], 160, 1e-4);
}

// host: launch a (5), launch b (5); stream: kernels a (20) and b (30).
TaskGraph two_kernels(std::vector<TaskId>& kernels) {
  TaskGraphBuilder builder;
  const LaneId host = builder.add_lane({LaneKind::host_thread, 0, 1, true, "thread 1"});
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream, 0, 7, true, "stream 7"});
  for (const int64_t duration : {20, 30}) {
    Task launch;
    launch.lane = host;
    launch.kind = TaskKind::launch;
    launch.duration = Nanoseconds(5);
    launch.op_instance = static_cast<uint32_t>(duration);
    launch.event = kNoLink;
    const TaskId issued = builder.add(launch);
    Task kernel = launch;
    kernel.lane = stream;
    kernel.kind = TaskKind::kernel;
    kernel.duration = Nanoseconds(duration);
    kernels.push_back(builder.add(kernel));
    builder.depend(kernels.back(), {issued, Anchor::end, Nanoseconds(0)});
  }
  auto graph = std::move(builder).build();
  EXPECT_TRUE(graph.ok());
  return std::move(*graph);
}

TEST(KernelInsertionTest, AKernelComesAndGoesWithItsLaunch) {
  std::vector<TaskId> kernels;
  const TaskGraph graph = two_kernels(kernels);
  EXPECT_EQ(simulate(graph).end, Nanoseconds(55));  // launch, then both kernels
  EXPECT_TRUE(launch_of(graph, kernels[1]).valid());

  GraphEdit more(graph);
  insert_kernel(more, kernels[0], Side::after, "between", Nanoseconds(100), Nanoseconds(7));
  const auto longer = more.build();
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->size(), graph.size() + 2);
  EXPECT_GE(simulate(*longer).end, Nanoseconds(155));

  GraphEdit less(graph);
  remove_kernels(less, std::vector<TaskId>{kernels[0]});
  const auto shorter = less.build();
  ASSERT_TRUE(shorter.ok());
  EXPECT_EQ(simulate(*shorter).end, Nanoseconds(35));  // its launch takes no time any more
}

}  // namespace
}  // namespace forerun::whatif
