// Dependency graphs of small traces made by hand: simulated unchanged they give the measured times to the nanosecond,
// and what waited for the GPU keeps waiting for it when kernels change.
#include "timeline/dependency_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ingest/trace/device_clock.h"
#include "timeline/layers.h"

namespace forerun {
namespace {

constexpr LaneIndex kMain = 0, kAutograd = 1, kCompute = 2, kSide = 3;

// A trace by hand: two host threads and two streams; times in microseconds.
class TraceMaker {
 public:
  TraceMaker() {
    trace_.file = "by_hand.json";
    trace_.lanes = {{TraceLane::Kind::host_thread, 1, 100, NameId()},
                    {TraceLane::Kind::host_thread, 1, 101, NameId()},
                    {TraceLane::Kind::gpu_stream, 0, 7, NameId()},
                    {TraceLane::Kind::gpu_stream, 0, 20, NameId()}};
  }

  EventIndex add(EventKind kind, const std::string& name, LaneIndex lane, double start, double duration,
                 int64_t correlation = kNoNumber, int64_t sequence = kNoNumber) {
    return trace_.events.add({.start = static_cast<int64_t>(start * 1000) + 1'000'000,
                              .duration = static_cast<int64_t>(duration * 1000),
                              .name = trace_.names.intern(name),
                              .kind = kind,
                              .lane = lane,
                              .correlation = correlation,
                              .sequence = sequence});
  }

  // An op of 10 us that launches a kernel in its middle.
  void launch(double at, const std::string& kernel, double kernel_start, double kernel_duration,
              LaneIndex thread = kMain, LaneIndex stream = kCompute) {
    const int64_t id = ++last_id_;
    add(EventKind::op, "aten::" + kernel, thread, at, 10);
    add(EventKind::runtime, "cudaLaunchKernel", thread, at + 2, 5, id);
    add(EventKind::kernel, kernel, stream, kernel_start, kernel_duration, id);
  }

  // As readers do.
  Trace finish() {
    sort_events(trace_.events);
    align_device_clocks(trace_);
    return std::move(trace_);
  }

  Trace& trace() { return trace_; }

 private:
  Trace trace_;
  int64_t last_id_ = 0;
};

TraceGraph graph_of(const std::vector<Trace>& traces) {
  auto graph = dependency_graph(traces);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return std::move(*graph);
}
TraceGraph graph_of(Trace trace) {
  std::vector<Trace> one;
  one.push_back(std::move(trace));
  return graph_of(one);
}

void expect_as_measured(const TraceGraph& graph) {
  const Simulation simulation = simulate(graph.tasks);
  for (uint32_t i = 0; i < graph.tasks.size(); ++i) {
    EXPECT_EQ(simulation.start[i], graph.measured_start[i]) << graph.tasks.describe(TaskId(i));
  }
}

// The same tasks, those of the device `factor` times as long.
TaskGraph with_device_scaled(const TaskGraph& graph, double factor) {
  TaskGraphBuilder builder(graph.names());
  for (const Lane& lane : graph.lanes()) builder.add_lane(lane);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    Task task = graph[TaskId(i)];
    if (on_gpu(task.kind)) {
      task.duration = Nanoseconds(static_cast<int64_t>(static_cast<double>(task.duration.value) * factor));
    }
    builder.add(task);
    for (const Dependency& dependency : graph.dependencies(TaskId(i))) builder.depend(TaskId(i), dependency);
  }
  auto built = std::move(builder).build();
  EXPECT_TRUE(built.ok());
  return std::move(*built);
}

double end_us(const TaskGraph& graph) { return microseconds(simulate(graph).end); }

// Ten ops, 20 us apart, each with a kernel of 4 us: the host decides. Then a device sync.
Trace host_bound() {
  TraceMaker maker;
  for (int i = 0; i < 10; ++i) maker.launch(20 * i, "gemm", 20 * i + 8, 4);
  maker.add(EventKind::runtime, "cudaDeviceSynchronize", kMain, 200, 3);
  maker.add(EventKind::op, "aten::after", kMain, 210, 5);
  return maker.finish();
}

TEST(DependencyGraphTest, HostBoundTraceBecomesGpuBoundWithSlowerKernels) {
  const TraceGraph graph = graph_of(host_bound());
  expect_as_measured(graph);
  EXPECT_EQ(graph.counts.device_work, 10);
  EXPECT_EQ(graph.counts.linked, 10);
  EXPECT_NEAR(end_us(graph.tasks), 215, 0.1);
  // Ten kernels of 40 us behind the first launch; then the host wakes up, and one more op.
  EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 10)), 8 + 10 * 40, 35);
  EXPECT_GT(end_us(with_device_scaled(graph.tasks, 10)), 400);
  EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 100)), 8 + 10 * 400, 35);
  // Faster kernels bring nothing: the host takes as long as it did.
  EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 0.1)), 215, 1);
}

// Ten ops at once, kernels of 100 us: the host waits for the GPU in the sync.
TEST(DependencyGraphTest, TheWaitOfASyncIsNoConstant) {
  TraceMaker maker;
  for (int i = 0; i < 10; ++i) maker.launch(20 * i, "gemm", 8 + 101 * i, 100);
  maker.add(EventKind::runtime, "cudaDeviceSynchronize", kMain, 200, 1020 - 200);
  maker.add(EventKind::op, "aten::after", kMain, 1025, 5);
  const TraceGraph graph = graph_of(maker.finish());
  expect_as_measured(graph);
  EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 2)), 2030, 10);
  // Kernels nearly gone: the host's 200 us of launching and a sync with nothing to wait for remain.
  EXPECT_LT(end_us(with_device_scaled(graph.tasks, 0.01)), 230);
}

TEST(DependencyGraphTest, ABlockingCopyHoldsTheHost) {
  TraceMaker maker;
  maker.launch(0, "gemm", 8, 500);
  maker.add(EventKind::runtime, "cudaMemcpyAsync", kMain, 20, 500, 77);
  maker.add(EventKind::copy, "Memcpy DtoH (Device -> Pageable)", kCompute, 509, 6, 77);
  maker.add(EventKind::runtime, "cudaStreamSynchronize", kMain, 521, 2);
  maker.launch(530, "relu", 538, 10);
  const TraceGraph graph = graph_of(maker.finish());
  expect_as_measured(graph);
  EXPECT_GE(graph.counts.syncs_inferred, 2);
  EXPECT_NEAR(end_us(graph.tasks), 548, 0.1);
  EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 3)), 548 + 1000 + 12 + 20, 2);
  EXPECT_LT(end_us(with_device_scaled(graph.tasks, 0.01)), 80);
}

TEST(DependencyGraphTest, TheMainThreadWaitsForTheBackwardPass) {
  TraceMaker maker;
  maker.launch(0, "gemm", 8, 10);
  maker.launch(100, "gemm_backward", 108, 10, kAutograd);
  maker.add(EventKind::runtime, "cudaMemcpyAsync", kAutograd, 120, 300, 77);
  maker.add(EventKind::copy, "Memcpy DtoH (Device -> Pageable)", kCompute, 125, 290, 77);
  maker.launch(430, "gemm_backward", 438, 10, kAutograd);
  maker.add(EventKind::annotation, "Optimizer.step#SGD.step", kMain, 480, 10);
  maker.launch(480, "sgd", 488, 10);
  const TraceGraph graph = graph_of(maker.finish());
  expect_as_measured(graph);
  EXPECT_EQ(graph.counts.hand_overs, 1);
  // The copy takes 290 us longer, so the backward pass ends later, and so does everything on the main thread.
  EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 2)), 498 + 290 + 10, 12);
  EXPECT_LT(end_us(with_device_scaled(graph.tasks, 0.01)), 250);
}

TEST(DependencyGraphTest, StreamsThatWaitForEventsAreFound) {
  TraceMaker maker;
  maker.launch(0, "gemm", 8, 200);
  maker.add(EventKind::runtime, "cudaStreamWaitEvent", kMain, 12, 1);
  maker.launch(20, "ncclDevKernel_AllReduce", 210, 300, kMain, kSide);
  maker.add(EventKind::runtime, "cudaStreamWaitEvent", kMain, 32, 1);
  maker.launch(40, "adam", 512, 20);
  const TraceGraph graph = graph_of(maker.finish());
  expect_as_measured(graph);
  EXPECT_EQ(graph.counts.syncs_inferred, 2);
  EXPECT_EQ(graph.counts.communications, 1);
  EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 2)), 532 + 520, 1);
  EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 0.1)), 12 + 52, 10);
}

TEST(DependencyGraphTest, WaitsThatTheTracerTellsAreTaken) {
  TraceMaker maker;
  maker.trace().lanes.push_back({TraceLane::Kind::gpu_sync, 0, 20, NameId()});
  maker.launch(0, "long", 8, 100);
  maker.add(EventKind::runtime, "cudaEventRecord", kMain, 11, 1, 501);
  maker.launch(20, "unrelated", 109, 100);  // launched after the record: not waited for
  maker.add(EventKind::runtime, "cudaStreamWaitEvent", kMain, 32, 1, 502);
  const EventIndex row = maker.add(EventKind::sync, "Stream Wait Event", 4, 32, 1, 502);
  TraceSync sync;
  sync.kind = maker.trace().names.intern("Stream Wait Event");
  sync.stream = 20;
  sync.wait_on_stream = 7;
  sync.record_correlation = 501;
  maker.trace().syncs.push_back(sync);
  maker.trace().events.detail.set(row, 0);
  maker.launch(40, "waits", 110, 10, kMain, kSide);
  const TraceGraph graph = graph_of(maker.finish());
  expect_as_measured(graph);
  EXPECT_EQ(graph.counts.syncs_found, 1);
  const TaskGraph slower = with_device_scaled(graph.tasks, 2);
  const Simulation simulation = simulate(slower);
  for (uint32_t i = 0; i < slower.size(); ++i) {
    if (slower.text(slower.name(TaskId(i))) != "waits") continue;
    EXPECT_NEAR(microseconds(simulation.start[i]), 210, 1);
  }
}

// Two ranks, the second later at the collective; its machine's clock is `ahead` of the first one's.
std::vector<Trace> two_ranks(double ahead) {
  std::vector<Trace> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    TraceMaker maker;
    const double busy = rank == 0 ? 50 : 300, clock = rank == 0 ? 0 : ahead;
    maker.launch(clock, "gemm", clock + 8, busy);
    maker.launch(clock + 20, "ncclDevKernel_AllReduce", clock + 8 + busy + 1, rank == 0 ? 350 : 100);
    maker.trace().rank = rank;
    maker.trace().world_size = 2;
    ranks.push_back(maker.finish());
  }
  return ranks;
}

TEST(DependencyGraphTest, RanksMeetInACollectiveWhateverTheirClocks) {
  for (const double ahead : {-50'000, -1000, 0, 1000, 50'000}) {
    const TraceGraph graph = graph_of(two_ranks(ahead));
    ASSERT_EQ(graph.collectives.size(), 1u) << ahead;
    EXPECT_EQ(graph.ranks[1].clock_offset, Nanoseconds(static_cast<int64_t>(1000 * ahead)));
    const Simulation simulation = simulate(graph.tasks);
    for (size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(simulation.end_of(graph.tasks, graph.collectives[0].kernels[r]), graph.collectives[0].measured_ends[r]);
    }
    // Twice as fast on both ranks: the first waits less for the second.
    const TaskGraph faster = with_device_scaled(graph.tasks, 0.5);
    EXPECT_NEAR(end_us(faster), 8 + 150 + 1 + 50, 1) << ahead;
  }
}

TEST(DependencyGraphTest, AFullQueueHoldsTheHost) {
  TraceMaker maker;
  constexpr int kCount = 2000, kQueue = 1022;
  for (int i = 0; i < kCount; ++i) {
    // One launch every 10 us until the queue is full; then one for each kernel that begins.
    const double kernel_start = 8 + 101.0 * i;
    const double at = i < kQueue + 90 ? 10.0 * i : 8 + 101.0 * (i - kQueue) - 60;
    const double takes = i < kQueue + 90 ? 5 : 61;
    maker.add(EventKind::runtime, "cudaLaunchKernel", kMain, at, takes, i + 1);
    maker.add(EventKind::kernel, "gemm", kCompute, kernel_start, 100, i + 1);
  }
  const TraceGraph graph = graph_of(maker.finish());
  EXPECT_GT(graph.counts.queue_waits, 700);
  expect_as_measured(graph);
  // With kernels nearly gone the host's own time remains: about 5 to 40 us a launch.
  EXPECT_LT(end_us(with_device_scaled(graph.tasks, 0.01)), 80'000);
}

TEST(DependencyGraphTest, DeviceClocksBehindTheHostAreShifted) {
  TraceMaker maker;
  maker.launch(0, "gemm", -1, 4);  // begins 3 us before its launch
  maker.launch(20, "gemm", 30, 4);
  const TraceGraph graph = graph_of(maker.finish());
  expect_as_measured(graph);
}

// The kernels of TheWaitOfASyncIsNoConstant, with a device's clock that is off.
Trace waiting_host(double device_clock) {
  TraceMaker maker;
  for (int i = 0; i < 10; ++i) maker.launch(20 * i, "gemm", 8 + 101 * i + device_clock, 100);
  maker.add(EventKind::runtime, "cudaDeviceSynchronize", kMain, 200, 1020 - 200);
  maker.add(EventKind::op, "aten::after", kMain, 1025, 5);
  return maker.finish();
}

TEST(DependencyGraphTest, WhatWaitsForAKernelDoesSoWhateverTheDevicesClock) {
  for (const double clock : {-80'000, -5000, -300, 0, 300, 5000, 80'000}) {
    const TraceGraph graph = graph_of(waiting_host(clock));
    expect_as_measured(graph);
    EXPECT_NEAR(end_us(graph.tasks), 1030, 1) << clock;
    EXPECT_NEAR(end_us(with_device_scaled(graph.tasks, 2)), 2030, 20) << clock;
    EXPECT_LT(end_us(with_device_scaled(graph.tasks, 0.01)), 230) << clock;
  }
}

// One kernel of a thousand whose launch is another one's: the clock is left alone.
TEST(DependencyGraphTest, AWrongLinkIsNoClock) {
  TraceMaker maker;
  for (int i = 0; i < 1000; ++i) maker.launch(20 * i, "gemm", 20 * i + 8, 4);
  maker.add(EventKind::kernel, "stray", kCompute, 19'990, 4, 9999);
  maker.add(EventKind::runtime, "cudaLaunchKernel", kMain, 50'000, 5, 9999);
  const Trace trace = maker.finish();
  EXPECT_EQ(trace.device_shift, 0);
  expect_as_measured(graph_of(trace));
}

TEST(DependencyGraphTest, LaunchesThatCannotBeAreLeftOut) {
  TraceMaker maker;
  maker.add(EventKind::kernel, "early", kCompute, 0, 4, 1);
  maker.add(EventKind::runtime, "cudaStreamSynchronize", kMain, 10, 5);
  maker.add(EventKind::runtime, "cudaLaunchKernel", kMain, 5000, 5, 1);
  const TraceGraph graph = graph_of(maker.finish());
  expect_as_measured(graph);
}

TEST(DependencyGraphTest, EventsYearsApartAreAnError) {
  TraceMaker maker;
  maker.add(EventKind::op, "aten::a", kMain, 0, 4);
  maker.add(EventKind::op, "aten::b", kMain, 9e15, 4);
  std::vector<Trace> one;
  one.push_back(maker.finish());
  one[0].events.start[0] = INT64_MIN / 2;
  EXPECT_FALSE(dependency_graph(one).ok());
}

TEST(DependencyGraphTest, NothingToSimulateIsAnError) {
  std::vector<Trace> empty(1);
  EXPECT_FALSE(dependency_graph(empty).ok());
}

TEST(IterationsTest, FindsStepMarksThenOptimizerMarksThenRepetitions) {
  const auto made = [](const std::function<void(TraceMaker&)>& add) {
    TraceMaker maker;
    add(maker);
    const Trace trace = maker.finish();
    return find_iterations(trace, link_events(trace));
  };
  const Iterations steps = made([](TraceMaker& maker) {
    for (int i = 0; i < 3; ++i) {
      maker.add(EventKind::annotation, "ProfilerStep#" + std::to_string(i), kMain, 100 * i, 90);
      maker.add(EventKind::annotation, "Optimizer.step#SGD.step", kMain, 100 * i + 50, 20);
    }
  });
  EXPECT_EQ(steps.source, IterationSource::profiler_steps);
  ASSERT_EQ(steps.count(), 3u);
  EXPECT_EQ(steps.boundaries[1] - steps.boundaries[0], 100'000);
  EXPECT_EQ(steps.boundaries[3] - steps.boundaries[2], 90'000);

  const Iterations optimizer = made([](TraceMaker& maker) {
    for (int i = 0; i < 3; ++i) maker.add(EventKind::annotation, "Optimizer.step#SGD.step", kMain, 100 * i + 50, 20);
  });
  EXPECT_EQ(optimizer.source, IterationSource::optimizer_steps);
  EXPECT_EQ(optimizer.count(), 2u);
  EXPECT_FALSE(optimizer.to_the_end);

  const Iterations repeated = made([](TraceMaker& maker) {
    maker.add(EventKind::op, "aten::first", kMain, 0, 5);
    for (int i = 0; i < 4; ++i) {
      int at = 0;
      for (const char* name : {"aten::a", "aten::b", "aten::b", "aten::c", "aten::d"}) {
        maker.add(EventKind::op, name, kMain, 10 + 100 * i + 10 * at++, 5);
      }
    }
  });
  EXPECT_EQ(repeated.source, IterationSource::repeated_ops);
  EXPECT_EQ(repeated.count(), 4u);

  const Iterations whole = made([](TraceMaker& maker) { maker.add(EventKind::op, "aten::a", kMain, 0, 5); });
  EXPECT_EQ(whole.source, IterationSource::whole_trace);
  EXPECT_TRUE(whole.to_the_end);
}

TEST(LayersTest, BackwardOpsFindTheirLayerBySequenceNumber) {
  TraceMaker maker;
  maker.add(EventKind::op, "aten::linear", kMain, 0, 10);
  maker.add(EventKind::op, "aten::addmm", kMain, 1, 8, kNoNumber, 41);
  maker.add(EventKind::op, "aten::linear", kMain, 20, 10);
  maker.add(EventKind::op, "aten::addmm", kMain, 21, 8, kNoNumber, 42);
  maker.add(EventKind::op, "autograd::engine::evaluate_function: AddmmBackward0", kAutograd, 40, 10, kNoNumber, 42);
  maker.add(EventKind::op, "aten::mm", kAutograd, 41, 5);
  maker.add(EventKind::annotation, "Optimizer.step#SGD.step", kMain, 60, 20);
  maker.add(EventKind::op, "aten::add_", kMain, 62, 5);
  const Trace trace = maker.finish();
  const TraceLinks links = link_events(trace);
  const EventLayers layers = map_layers(trace, links, find_iterations(trace, links));
  const auto layer = [&](EventIndex i) -> std::string {
    if (!layers.layer[i].valid()) return "";
    const size_t own = trace.names.size();
    return layers.layer[i].value < own ? trace.names[layers.layer[i]] : layers.names[layers.layer[i].value - own];
  };
  EXPECT_EQ(layer(1), "aten::linear#0");
  EXPECT_EQ(layer(3), "aten::linear#1");
  EXPECT_EQ(layer(4), "aten::linear#1");
  EXPECT_EQ(layer(5), "aten::linear#1");
  EXPECT_EQ(layers.phase[1], StepPhase::forward);
  EXPECT_EQ(layers.phase[5], StepPhase::backward);
  EXPECT_EQ(layers.phase[7], StepPhase::update);
  EXPECT_EQ(layers.outer_op[5], 4u);
}

// Windows of host time name layers: on the thread of the annotation, on another one, and for the backward pass.
TEST(LayersTest, AnnotationsStandForModules) {
  TraceMaker maker;
  const std::vector<std::string> names = {"stem", "block", "block", "pool", "head"};
  for (size_t i = 0; i < names.size(); ++i) {
    const double at = 100.0 * static_cast<double>(i);
    maker.add(EventKind::annotation, names[i], kMain, at, 90);
    maker.launch(at + 5, "gemm", at + 20, 10);
  }
  maker.add(EventKind::runtime, "cudaLaunchKernel", kAutograd, 150, 5, 77);  // a thread without marks
  maker.add(EventKind::kernel, "helper", kSide, 160, 5, 77);
  maker.add(EventKind::op, "aten::addmm", kMain, 230, 8, kNoNumber, 42);
  maker.add(EventKind::op, "autograd::engine::evaluate_function: AddmmBackward0", kAutograd, 600, 30, kNoNumber, 42);
  maker.add(EventKind::runtime, "cudaLaunchKernel", kAutograd, 605, 5, 78);
  maker.add(EventKind::kernel, "backward", kCompute, 620, 5, 78);
  maker.add(EventKind::annotation, "Optimizer.step#SGD.step", kMain, 700, 50);
  maker.launch(705, "update", 720, 5);
  const Trace trace = maker.finish();
  const TraceLinks links = link_events(trace);
  const EventLayers layers = map_layers(trace, links, find_iterations(trace, links));
  EXPECT_TRUE(layers.annotations);
  EXPECT_FALSE(layers.modules);
  std::vector<std::pair<std::string, std::string>> of_kernels;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (trace.events.kind[i] != EventKind::kernel) continue;
    const NameId layer = layers.layer[i];
    of_kernels.emplace_back(trace.name(i), layer.valid() ? layers.names[layer.value - trace.names.size()] : "");
  }
  EXPECT_EQ(of_kernels, (std::vector<std::pair<std::string, std::string>>{{"gemm", "stem"},
                                                                          {"gemm", "block#0"},
                                                                          {"helper", "block#0"},
                                                                          {"gemm", "block#1"},
                                                                          {"gemm", "pool"},
                                                                          {"gemm", "head"},
                                                                          {"backward", "block#1"},
                                                                          {"update", ""}}));
}

// Marks of phases, and marks that most of the forward pass is outside of.
TEST(LayersTest, FewAnnotationsAreNoLayers) {
  const auto annotated = [](size_t marks, size_t launches) {
    TraceMaker maker;
    for (size_t i = 0; i < launches; ++i) {
      const double at = 100.0 * static_cast<double>(i);
      if (i < marks) maker.add(EventKind::annotation, "mark " + std::to_string(i), kMain, at, 90);
      maker.launch(at + 5, "gemm", at + 20, 10);
    }
    const Trace trace = maker.finish();
    const TraceLinks links = link_events(trace);
    return map_layers(trace, links, find_iterations(trace, links)).annotations;
  };
  EXPECT_TRUE(annotated(6, 6));
  EXPECT_FALSE(annotated(2, 2));
  EXPECT_FALSE(annotated(6, 20));
}

TEST(LayersTest, ModuleEventsNameTheLayer) {
  TraceMaker maker;
  maker.add(EventKind::python, "nn.Module: Linear_3", kMain, 0, 30);
  maker.launch(5, "gemm", 20, 10);
  const Trace trace = maker.finish();
  const TraceLinks links = link_events(trace);
  const EventLayers layers = map_layers(trace, links, find_iterations(trace, links));
  EXPECT_TRUE(layers.modules);
  for (EventIndex i = 0; i < trace.size(); ++i) {
    ASSERT_TRUE(layers.layer[i].valid());
    EXPECT_EQ(layers.names[layers.layer[i].value - trace.names.size()], "Linear_3");
  }
}

// One kernel on each of many streams, and a stream that waits for another.
Trace with_streams(int count) {
  TraceMaker maker;
  Trace& trace = maker.trace();
  for (int i = 2; i < count; ++i) trace.lanes.push_back({TraceLane::Kind::gpu_stream, 0, 1000 + i, NameId()});
  for (int i = 0; i < count; ++i) {
    maker.launch(20.0 * i, "k", 20.0 * i + 12, 5, kMain, static_cast<LaneIndex>(kCompute + i));
    if (i % 100 == 0) maker.add(EventKind::runtime, "cudaStreamWaitEvent", kMain, 20.0 * i + 8, 1);
  }
  return maker.finish();
}

TEST(DependencyGraph, ManyStreamsAreSimulatedOrRefusedWithTheirCount) {
  expect_as_measured(graph_of(with_streams(3000)));
  const Trace many = with_streams(5000);
  const auto graph = dependency_graph(std::span(&many, 1));
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().what.find("5000 GPU streams"), std::string::npos) << graph.error().message();
  EXPECT_FALSE(graph.error().remedy.empty());
}

}  // namespace
}  // namespace forerun
