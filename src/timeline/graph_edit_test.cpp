// The primitives: what is removed leaves no hole, what is inserted is waited for, the original stays as it was.
#include "timeline/graph_edit.h"

#include <gtest/gtest.h>

#include <random>

#include "timeline/simulator.h"

namespace forerun {
namespace {

// Two launches and kernels on a host thread and a stream, and a host task that waits for the second kernel.
struct Small {
  TaskGraph graph;
  TaskId launch0, launch1, kernel0, kernel1, after;
};

Small small() {
  TaskGraphBuilder builder(std::make_shared<StringTable>([] {
    StringTable made;
    for (const char* text : {"launch", "gemm_0", "gemm_1", "after", "aten::mm", "linear#0"}) made.intern(text);
    return made;
  }()));
  const LaneId host = builder.add_lane({});
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream, 0, 7, true, "stream 7"});
  const auto task = [&](LaneId lane, TaskKind kind, int64_t duration, int64_t gap, size_t name) {
    Task made;
    made.lane = lane;
    made.kind = kind;
    made.duration = Nanoseconds(duration);
    made.gap = Nanoseconds(gap);
    made.name = NameId(name);
    if (kind == TaskKind::kernel) {
      made.op = NameId(4);
      made.module = NameId(5);
      made.phase = StepPhase::backward;
    }
    return builder.add(made);
  };
  Small made;
  made.launch0 = task(host, TaskKind::launch, 10, 5, 0);
  made.launch1 = task(host, TaskKind::launch, 10, 5, 0);
  made.kernel0 = task(stream, TaskKind::kernel, 100, 0, 1);
  made.kernel1 = task(stream, TaskKind::kernel, 50, 0, 2);
  made.after = task(host, TaskKind::host_op, 7, 0, 3);
  builder.depend(made.kernel0, {made.launch0, Anchor::start, Nanoseconds(4)});
  builder.depend(made.kernel1, {made.launch1, Anchor::start, Nanoseconds(4)});
  builder.depend(made.after, {made.kernel1, Anchor::end, Nanoseconds(3)});
  auto graph = std::move(builder).build();
  EXPECT_TRUE(graph.ok());
  made.graph = std::move(*graph);
  return made;
}

int64_t end_of(const GraphEdit& edit) {
  const auto graph = edit.build();
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return simulate(*graph).end.value;
}

TEST(GraphEditTest, SelectsByEveryKey) {
  const Small s = small();
  EXPECT_EQ(select(s.graph, is_kind(TaskKind::launch)), (std::vector<TaskId>{s.launch0, s.launch1}));
  EXPECT_EQ(select(s.graph, named("gemm_1")), std::vector<TaskId>{s.kernel1});
  EXPECT_EQ(select(s.graph, of_op("mm")).size(), 2u);
  EXPECT_EQ(select(s.graph, of_module("linear#0")).size(), 2u);
  EXPECT_EQ(select(s.graph, in_phase(StepPhase::backward)).size(), 2u);
  EXPECT_EQ(select(s.graph, is_on_lane(LaneKind::host_thread)).size(), 3u);
  EXPECT_EQ(select(s.graph, both(is_on_gpu(), negated(named("gemm_1")))), std::vector<TaskId>{s.kernel0});
  EXPECT_EQ(select(s.graph, either(named("gemm_1"), named("after"))).size(), 2u);
}

TEST(GraphEditTest, AnEditWithoutChangesChangesNothing) {
  const Small s = small();
  GraphEdit edit(s.graph);
  const auto same = edit.build();
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(simulate(*same).start, simulate(s.graph).start);
  EXPECT_EQ(simulate(s.graph).end.value, 4 + 100 + 50 + 3 + 7);
}

TEST(GraphEditTest, ScalesDurationsAndGaps) {
  const Small s = small();
  GraphEdit edit(s.graph);
  edit.scale(select(s.graph, is_on_gpu()), 0.1);
  edit.scale_gaps(select(s.graph, is_kind(TaskKind::launch)), 2);
  EXPECT_EQ(end_of(edit), 20 + 10 + 10 + 7);  // the host decides now
}

TEST(GraphEditTest, WhatIsRemovedHandsOnWhatItWaitedFor) {
  const Small s = small();
  GraphEdit edit(s.graph);
  edit.remove(std::vector<TaskId>{s.kernel1});
  // `after` now waits for the kernel before, and for the launch of the removed one.
  EXPECT_EQ(end_of(edit), 4 + 100 + 3 + 7);
  edit.remove(std::vector<TaskId>{s.kernel0, s.launch0, s.launch1});
  EXPECT_EQ(end_of(edit), 7);
}

TEST(GraphEditTest, WhatStandsBehindARemovedTaskWaitsInItsPlace) {
  const Small s = small();
  GraphEdit edit(s.graph);
  const TaskId last = edit.insert_after(s.after, s.graph[s.after]);
  edit.remove(std::vector<TaskId>{s.after});
  std::vector<TaskId> now;
  const auto graph = edit.build(&now);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(simulate(*graph).start_of(now[last.value]).value, 4 + 100 + 50 + 3);
}

TEST(GraphEditTest, WhatIsInsertedIsWaitedFor) {
  const Small s = small();
  GraphEdit edit(s.graph);
  Task cast;
  cast.kind = TaskKind::kernel;
  cast.duration = Nanoseconds(20);
  cast.name = edit.name("cast_to_half");
  const TaskId before = edit.insert_before(s.kernel1, cast);
  edit.insert_after(s.kernel1, cast);
  EXPECT_EQ(end_of(edit), 4 + 100 + 20 + 50 + 20);  // the one behind delays nobody, and ends last
  const TaskId send = edit.insert_after(s.kernel0, cast);
  edit.depend(s.after, {send, Anchor::end, Nanoseconds(100)});
  EXPECT_EQ(end_of(edit), 4 + 100 + 20 + 100 + 7);
  std::vector<TaskId> now;
  const auto graph = edit.build(&now);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->text(graph->name(now[before.value])), "cast_to_half");
  EXPECT_EQ(s.graph.names()->find("cast_to_half").valid(), false);
}

TEST(GraphEditTest, ReleasedTasksDoNotWait) {
  const Small s = small();
  GraphEdit edit(s.graph);
  edit.release(s.after, s.kernel1);
  const auto graph = edit.build();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(simulate(*graph).end.value, 154);
}

TEST(GraphEditTest, ScheduledLanesFollowPriorities) {
  const Small s = small();
  GraphEdit edit(s.graph);
  const LaneId link = edit.add_lane({LaneKind::network_link, 0, 0, false, "link"});
  Task send;
  send.kind = TaskKind::communication;
  send.lane = link;
  send.duration = Nanoseconds(100);
  const TaskId low = edit.append(send), lower = edit.append(send), high = edit.append(send);
  edit.set_priority(high, 5);
  for (const TaskId task : {low, lower, high}) edit.depend(task, {s.kernel0, Anchor::end, Nanoseconds(0)});
  std::vector<TaskId> now;
  const auto graph = edit.build(&now);
  ASSERT_TRUE(graph.ok());
  const Simulation simulation = simulate(*graph);
  EXPECT_EQ(simulation.start_of(now[high.value]).value, 104);
  EXPECT_EQ(simulation.start_of(now[low.value]).value, 204);
  EXPECT_EQ(simulation.start_of(now[lower.value]).value, 304);
}

TEST(GraphEditTest, RemovingNeverMakesItLonger) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    TaskGraphBuilder builder;
    for (int i = 0; i < 3; ++i) builder.add_lane({});
    for (size_t i = 0; i < 30; ++i) {
      Task task;
      task.lane = LaneId(random() % 3);
      task.duration = Nanoseconds(static_cast<int64_t>(random() % 10));
      task.gap = Nanoseconds(static_cast<int64_t>(random() % 3));
      const TaskId added = builder.add(task);
      if (i > 0) builder.depend(added, {TaskId(random() % i), Anchor::end, Nanoseconds(0)});
    }
    const auto graph = std::move(builder).build();
    ASSERT_TRUE(graph.ok());
    GraphEdit edit(*graph);
    std::vector<TaskId> gone;
    for (size_t i = 0; i < 30; ++i) {
      if (random() % 3 == 0) gone.emplace_back(i);
    }
    edit.remove(gone);
    EXPECT_LE(end_of(edit), simulate(*graph).end.value) << "trial " << trial;
  }
}

TEST(RepeatTest, CopiesRunBackToBack) {
  const Small s = small();
  GraphEdit edit(s.graph);
  edit.release(s.after, s.kernel1);
  const auto once = edit.build();
  ASSERT_TRUE(once.ok());
  std::vector<std::vector<TaskId>> copies;
  const auto graph = repeat(*once, 3, TaskId(), &copies);
  ASSERT_TRUE(graph.ok());
  const Simulation simulation = simulate(*graph);
  // The stream is busy without a break: 150 ns an iteration.
  EXPECT_EQ(simulation.end.value, 4 + 3 * 150);
  EXPECT_EQ(copies[2].size(), once->size());
}

}  // namespace
}  // namespace forerun
