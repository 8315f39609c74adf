// The simulators: hand-made graphs with known answers, and the fast one against the plain one on random graphs.
#include "timeline/simulator.h"

#include <gtest/gtest.h>

#include <random>

#include "timeline/critical_path.h"
#include "timeline/reference_simulator.h"

namespace forerun {
namespace {

Task task(LaneId lane, int64_t duration, int64_t gap = 0, int32_t priority = 0) {
  Task made;
  made.lane = lane;
  made.duration = Nanoseconds(duration);
  made.gap = Nanoseconds(gap);
  made.priority = priority;
  return made;
}

Dependency on(TaskId before, int64_t lag = 0, Anchor anchor = Anchor::end) {
  return {before, anchor, Nanoseconds(lag)};
}

TaskGraph built(TaskGraphBuilder&& builder) {
  auto graph = std::move(builder).build();
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return std::move(*graph);
}

std::vector<int64_t> starts(const Simulation& simulation) {
  std::vector<int64_t> values;
  for (const Nanoseconds start : simulation.start) values.push_back(start.value);
  return values;
}

TEST(SimulatorTest, HostGapsDelayTheHostAndLaunchesHoldKernelsBack) {
  TaskGraphBuilder builder;
  const LaneId host = builder.add_lane({});
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream});
  const TaskId launch0 = builder.add(task(host, 10, 5));
  const TaskId launch1 = builder.add(task(host, 10, 5));
  const TaskId kernel0 = builder.add(task(stream, 100, 1));
  const TaskId kernel1 = builder.add(task(stream, 20));
  builder.depend(kernel0, on(launch0, 4, Anchor::start));
  builder.depend(kernel1, on(launch1, 4, Anchor::start));
  const TaskId after_sync = builder.add(task(host, 7));
  builder.depend(after_sync, on(kernel1, 3));
  const Simulation simulation = simulate(built(std::move(builder)));
  EXPECT_EQ(starts(simulation), (std::vector<int64_t>{0, 15, 4, 105, 128}));
  EXPECT_EQ(simulation.end.value, 135);
}

TEST(SimulatorTest, AGapBelowZeroLetsKernelsOverlap) {
  TaskGraphBuilder builder;
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream});
  builder.add(task(stream, 10, -4));
  builder.add(task(stream, 10, -40));  // never earlier than its own start
  builder.add(task(stream, 1));
  EXPECT_EQ(starts(simulate(built(std::move(builder)))), (std::vector<int64_t>{0, 6, 6}));
}

TEST(SimulatorTest, OnAFreeLaneThePriorityDecidesAmongThoseThatWait) {
  TaskGraphBuilder builder;
  const LaneId host = builder.add_lane({});
  Lane link{LaneKind::network_link};
  link.ordered = false;
  const LaneId network = builder.add_lane(link);
  std::vector<TaskId> sends;
  for (int i = 0; i < 3; ++i) {
    const TaskId made = builder.add(task(host, 10));
    sends.push_back(builder.add(task(network, 100, 0, i)));
    builder.depend(sends.back(), on(made));
  }
  const TaskGraph graph = built(std::move(builder));
  // The first begins at once; when the link is free the third, more urgent, goes before the second.
  EXPECT_EQ(starts(simulate(graph)), (std::vector<int64_t>{0, 10, 10, 210, 20, 110}));
  const Schedule first_come = [](std::span<const ReadyTask>) { return size_t{0}; };
  EXPECT_EQ(starts(simulate(graph, first_come)), (std::vector<int64_t>{0, 10, 10, 110, 20, 210}));
}

TEST(SimulatorTest, BackwardDependenciesAreRenumberedAndCyclesNamed) {
  StringTable names;
  const NameId a = names.intern("copy_a"), b = names.intern("gemm_b");
  TaskGraphBuilder builder(std::make_shared<StringTable>(names));
  const LaneId one = builder.add_lane({LaneKind::gpu_stream, 0, 7, true, "stream 7"});
  const LaneId two = builder.add_lane({LaneKind::gpu_stream, 0, 9, true, "stream 9"});
  Task first = task(one, 10), second = task(two, 20);
  first.name = a;
  second.name = b;
  const TaskId late = builder.add(first), early = builder.add(second);
  builder.depend(late, on(early));
  TaskGraphBuilder looped = builder;
  std::vector<TaskId> renumbered;
  const auto graph = std::move(builder).build(&renumbered);
  ASSERT_TRUE(graph.ok());
  const Simulation simulation = simulate(*graph);
  EXPECT_EQ(simulation.start_of(renumbered[late.value]).value, 20);
  EXPECT_EQ(graph->text(graph->name(renumbered[late.value])), "copy_a");

  looped.depend(early, on(late));
  const auto failed = std::move(looped).build();
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().what.find("copy_a"), std::string::npos) << failed.error().what;
  EXPECT_NE(failed.error().what.find("gemm_b"), std::string::npos) << failed.error().what;
}

TEST(SimulatorTest, LaneOrderCountsInCycles) {
  TaskGraphBuilder builder;
  const LaneId lane = builder.add_lane({});
  const TaskId first = builder.add(task(lane, 1)), second = builder.add(task(lane, 1));
  builder.depend(first, on(second));
  EXPECT_FALSE(std::move(builder).build().ok());
}

TaskGraph random_graph(std::mt19937_64& random, bool free_lanes) {
  const auto pick = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
  TaskGraphBuilder builder;
  const int64_t lane_count = 1 + pick(4);
  for (int64_t i = 0; i < lane_count; ++i) {
    Lane lane;
    lane.ordered = !free_lanes || pick(1) == 0;
    builder.add_lane(lane);
  }
  const int64_t count = 1 + pick(40);
  for (int64_t i = 0; i < count; ++i) {
    const LaneId lane(static_cast<size_t>(pick(lane_count - 1)));
    const TaskId made =
        builder.add(task(lane, pick(9), pick(4) == 0 ? -pick(5) : pick(3), static_cast<int32_t>(pick(3))));
    for (int64_t d = pick(3); d > 0 && i > 0; --d) {
      builder.depend(made,
                     on(TaskId(static_cast<size_t>(pick(i - 1))), pick(5), pick(2) == 0 ? Anchor::start : Anchor::end));
    }
  }
  return built(std::move(builder));
}

TEST(SimulatorTest, AgreesWithThePlainOneOnRandomGraphs) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 1000; ++trial) {
    const TaskGraph graph = random_graph(random, trial % 3 != 0);
    const Simulation plain = reference_simulate(graph);
    ASSERT_EQ(starts(simulate(graph)), starts(plain)) << "trial " << trial;
    ASSERT_EQ(simulate(graph).end, plain.end) << "trial " << trial;
    ASSERT_EQ(starts(simulate(graph, earliest_start)), starts(plain)) << "trial " << trial;
    // Any other schedule: the latest possible start first.
    const Schedule latest = [](std::span<const ReadyTask> ready) {
      size_t best = 0;
      for (size_t i = 1; i < ready.size(); ++i) {
        if (ready[i].start >= ready[best].start) best = i;
      }
      return best;
    };
    ASSERT_EQ(starts(simulate(graph, latest)), starts(reference_simulate(graph, latest))) << "trial " << trial;
  }
}

TEST(SimulatorTest, LongerTasksNeverEndAnOrderedGraphEarlier) {
  std::mt19937_64 random(9);
  for (int trial = 0; trial < 200; ++trial) {
    const TaskGraph graph = random_graph(random, false);
    TaskGraphBuilder builder;
    for (const Lane& lane : graph.lanes()) builder.add_lane(lane);
    for (uint32_t i = 0; i < graph.size(); ++i) {
      Task longer = graph[TaskId(i)];
      longer.duration += Nanoseconds(static_cast<int64_t>(random() % 4));
      builder.add(longer);
      for (const Dependency& dependency : graph.dependencies(TaskId(i))) builder.depend(TaskId(i), dependency);
    }
    EXPECT_GE(simulate(built(std::move(builder))).end, simulate(graph).end);
  }
}

TEST(CriticalPathTest, NamesWhatHeldEachTaskBack) {
  TaskGraphBuilder builder;
  const LaneId host = builder.add_lane({});
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream});
  const TaskId launch0 = builder.add(task(host, 10, 5));
  const TaskId launch1 = builder.add(task(host, 10));
  const TaskId kernel0 = builder.add(task(stream, 100, 1));
  const TaskId kernel1 = builder.add(task(stream, 20));
  builder.depend(kernel0, on(launch0, 2));
  builder.depend(kernel1, on(launch1, 2));
  const TaskGraph graph = built(std::move(builder));
  const Simulation simulation = simulate(graph);
  const auto path = critical_path(graph, simulation);
  ASSERT_EQ(path.size(), 3u);
  EXPECT_EQ(path[0].task, launch0);
  EXPECT_EQ(path[1].task, kernel0);
  EXPECT_EQ(path[1].reason, Reason::dependency);
  EXPECT_EQ(path[1].wait.value, 2);
  EXPECT_EQ(path[2].task, kernel1);
  EXPECT_EQ(path[2].reason, Reason::lane);
  EXPECT_EQ(path[2].wait.value, 1);
  Nanoseconds sum{};
  for (const CriticalTask& step : path) sum += graph.duration(step.task) + step.wait;
  EXPECT_EQ(sum, simulation.end);
}

TEST(CriticalPathTest, AddsUpToTheEndWithoutOverlaps) {
  std::mt19937_64 random(13);
  for (int trial = 0; trial < 300; ++trial) {
    const TaskGraph graph = random_graph(random, trial % 2 == 0);
    const Simulation simulation = simulate(graph);
    const auto path = critical_path(graph, simulation);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(simulation.start_of(path.front().task).value, 0);
    EXPECT_EQ(simulation.end_of(graph, path.back().task), simulation.end);
    for (size_t i = 1; i < path.size(); ++i) {
      EXPECT_LE(simulation.start_of(path[i - 1].task), simulation.start_of(path[i].task));
    }
  }
}

TEST(SimulatorTest, AnEmptyGraphEndsAtOnce) {
  const TaskGraph graph = built(TaskGraphBuilder());
  EXPECT_EQ(simulate(graph).end.value, 0);
  EXPECT_TRUE(critical_path(graph, simulate(graph)).empty());
}

}  // namespace
}  // namespace forerun
