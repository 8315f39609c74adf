// Gradients found in small traces made by hand.
#include "whatif/traced_gradients.h"

#include <gtest/gtest.h>

#include "cost/collective/link_efficiency.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {
namespace {

constexpr LaneIndex kMainThread = 0, kAutogradThread = 1, kComputeStream = 2;

// Steps of two layers: forward on the main thread, backward on autograd's, each op with a kernel of 100 us.
class StepTrace {
 public:
  explicit StepTrace(bool shapes, bool marks) : shapes_(shapes), marks_(marks) {
    trace.file = "by_hand.json";
    trace.gpu = "NVIDIA H200";
    trace.lanes = {{TraceLane::Kind::host_thread, 1, 100, NameId()},
                   {TraceLane::Kind::host_thread, 1, 101, NameId()},
                   {TraceLane::Kind::gpu_stream, 0, 7, NameId()}};
  }

  void forward() {
    begun_ = host_;
    for (const int64_t sequence : {2 * step_, 2 * step_ + 1}) op("aten::linear", kMainThread, sequence, -1);
  }
  void backward() {
    for (const int64_t sequence : {2 * step_ + 1, 2 * step_}) {
      op("autograd::engine::evaluate_function: AddmmBackward0", kAutogradThread, sequence, 1);
      add(EventKind::op, "torch::autograd::AccumulateGrad", kAutogradThread, host_, 2, -1, -1, 1,
          shapes_ ? detail(sequence % 2 == 0 ? "[[10, 10]]" : "[[1000]]") : kNoIndex);
      host_ += 5;
    }
    ++step_;
  }
  void update() {
    if (marks_) add(EventKind::annotation, "Optimizer.step#SGD.step", kMainThread, host_, 18);
    op("aten::add_", kMainThread, -1, -1);
    if (marks_)
      add(EventKind::annotation, "ProfilerStep#" + std::to_string(step_), kMainThread, begun_, host_ - begun_);
  }

  Trace finished() {
    sort_events(trace.events);
    return trace;
  }

  Trace trace;

 private:
  void op(const std::string& name, LaneIndex thread, int64_t sequence, int32_t forward_thread) {
    ++correlation_;
    add(EventKind::op, name, thread, host_ + 1, 10, -1, sequence, forward_thread);
    add(EventKind::runtime, "cudaLaunchKernel", thread, host_ + 2, 5, correlation_);
    gpu_ = std::max(gpu_, host_ + 7);
    add(EventKind::kernel, "k", kComputeStream, gpu_, 100, correlation_);
    gpu_ += 101;
    host_ += 20;
  }

  void add(EventKind kind, const std::string& name, LaneIndex lane, int64_t start, int64_t duration,
           int64_t correlation = kNoNumber, int64_t sequence = kNoNumber, int32_t forward_thread = -1,
           uint32_t shapes = kNoIndex) {
    trace.events.add({.start = start * 1000,
                      .duration = duration * 1000,
                      .name = trace.names.intern(name),
                      .kind = kind,
                      .lane = lane,
                      .correlation = correlation,
                      .sequence = sequence,
                      .forward_thread = forward_thread,
                      .detail = shapes});
  }

  uint32_t detail(const std::string& dims) {
    OpDetail made;
    made.dims = trace.names.intern(dims);
    made.types = trace.names.intern(R"(["float"])");
    trace.ops.push_back(made);
    return static_cast<uint32_t>(trace.ops.size() - 1);
  }

  bool shapes_, marks_;
  int64_t step_ = 0, host_ = 0, gpu_ = 0, correlation_ = 0, begun_ = 0;
};

std::vector<BackwardPass> passes_of(const Trace& trace, Bytes all_bytes = Bytes(0)) {
  const auto edited = EditableIteration::of(trace, nullptr);
  EXPECT_TRUE(edited.ok()) << edited.error().message();
  auto found = traced_gradients(*edited, all_bytes);
  EXPECT_TRUE(found.ok()) << found.error().message();
  return found ? *found : std::vector<BackwardPass>{};
}

TEST(TracedGradients, SizesReadinessAndUse) {
  StepTrace steps(true, true);
  for (int i = 0; i < 2; ++i) {
    steps.forward();
    steps.backward();
    steps.update();
  }
  const Trace trace = steps.finished();
  const auto passes = passes_of(trace);
  ASSERT_EQ(passes.size(), 2U);
  for (const BackwardPass& pass : passes) {
    ASSERT_EQ(pass.gradients.size(), 2U);
    EXPECT_EQ(pass.gradients[0].bytes, Bytes(4000));
    EXPECT_EQ(pass.gradients[1].bytes, Bytes(400));
    EXPECT_LT(pass.gradients[0].ready, pass.gradients[1].ready);
    EXPECT_GT(pass.gradients[0].used, pass.gradients[1].used);
    EXPECT_LT(pass.gradients[0].used, pass.gradients[0].ready);
    ASSERT_EQ(pass.updates.size(), 1U);
    EXPECT_GT(pass.updates[0], pass.gradients[1].ready);
  }
}

TEST(TracedGradients, WithoutMarksTheUpdateIsWhatFollows) {
  StepTrace steps(true, false);
  steps.forward();
  steps.backward();
  steps.update();
  const Trace trace = steps.finished();
  const auto passes = passes_of(trace);
  ASSERT_EQ(passes.size(), 1U);
  EXPECT_EQ(passes[0].gradients.size(), 2U);
  EXPECT_EQ(passes[0].updates.size(), 1U);
}

TEST(TracedGradients, OfMicroBatchesTheLastCounts) {
  StepTrace steps(true, true);
  steps.forward();
  steps.backward();
  steps.forward();
  steps.backward();
  steps.update();
  const Trace trace = steps.finished();
  const auto passes = passes_of(trace);
  ASSERT_EQ(passes.size(), 1U);
  ASSERT_EQ(passes[0].gradients.size(), 2U);
  EXPECT_LT(passes[0].gradients[1].ready, passes[0].updates[0]);
}

TEST(TracedGradients, WithoutShapesTheUserSaysHowMuch) {
  StepTrace steps(false, true);
  steps.forward();
  steps.backward();
  steps.update();
  const Trace trace = steps.finished();
  EXPECT_EQ(passes_of(trace, Bytes(1000))[0].gradients[0].bytes, Bytes(500));
  const auto edited = EditableIteration::of(trace, nullptr);
  ASSERT_TRUE(edited.ok());
  const auto found = traced_gradients(*edited, Bytes(0));
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message().find("gradients_mb"), std::string::npos);
}

TEST(TracedGradients, NoBackwardPassIsAnError) {
  StepTrace steps(true, true);
  steps.forward();
  const Trace trace = steps.finished();
  const auto edited = EditableIteration::of(trace, nullptr);
  ASSERT_TRUE(edited.ok());
  EXPECT_FALSE(traced_gradients(*edited, Bytes(0)).ok());
}

class DistributedOptimizations : public ::testing::Test {
 protected:
  // Milliseconds of an iteration after one application.
  static double time_after(const Trace& trace, const std::string& text) {
    auto edited = EditableIteration::of(trace, nullptr);
    EXPECT_TRUE(edited.ok());
    if (!text.empty()) {
      const auto application = parse_application(text);
      EXPECT_TRUE(application.ok()) << application.error().message();
      if (!application) return -1;
      const Status status = application->optimization->apply(*edited, application->parameters);
      EXPECT_TRUE(status.ok()) << status.error().message();
    }
    const auto time = edited->iteration_time();
    EXPECT_TRUE(time.ok());
    return time ? milliseconds(*time) : -1;
  }

  static std::string message_of(const Trace& trace, const std::string& text) {
    auto edited = EditableIteration::of(trace, nullptr);
    const auto application = parse_application(text);
    if (!application) return application.error().message();
    const Status status = application->optimization->apply(*edited, application->parameters);
    return status.ok() ? "" : status.error().message();
  }
};

TEST_F(DistributedOptimizations, RankAsTheyShould) {
  for (const int count : {1, 4}) {
    StepTrace steps(true, true);
    for (int i = 0; i < count; ++i) {
      steps.forward();
      steps.backward();
      steps.update();
    }
    const Trace trace = steps.finished();
    const std::string slow = "workers=8,bandwidth_gbps=0.5,latency_us=1";
    const double alone = time_after(trace, "");
    EXPECT_DOUBLE_EQ(time_after(trace, "ddp:workers=1"), alone);
    const double bulk = time_after(trace, "bsp:" + slow), each = time_after(trace, "wfbp:" + slow);
    EXPECT_GT(bulk, alone);
    EXPECT_LE(each, bulk);
    // 4400 bytes around a ring of eight at what collectives reach of 62.5 MB/s, 14 latencies and a call.
    const auto reached = usual_collective_efficiency();
    ASSERT_TRUE(reached.ok());
    const double call = reached->between.call_us / 1e3;
    EXPECT_NEAR(bulk - alone, 2 * 7.0 / 8 * 4400 / (reached->between.share * 62.5e3) + 0.014 + call, 0.002);
    EXPECT_LE(time_after(trace, "mg_wfbp:" + slow), bulk);
    EXPECT_LE(time_after(trace, "parameter_server:mode=async," + slow), time_after(trace, "parameter_server:" + slow));
    EXPECT_LE(time_after(trace, "p3:" + slow), time_after(trace, "parameter_server:slice_mb=0.2," + slow) + 1e-3);
    EXPECT_GT(time_after(trace, "zero:stage=3," + slow), time_after(trace, "zero:stage=1," + slow) - 1e-3);
    EXPECT_GT(time_after(trace, "zero:stage=2," + slow), alone);
  }
}

TEST_F(DistributedOptimizations, WrongParametersAreNamed) {
  StepTrace steps(true, true);
  steps.forward();
  steps.backward();
  steps.update();
  const Trace trace = steps.finished();
  EXPECT_NE(message_of(trace, "ddp:network=11gbe").find("10gbe"), std::string::npos);
  EXPECT_NE(message_of(trace, "ddp:algorithm=rung").find("ring"), std::string::npos);
  EXPECT_NE(message_of(trace, "ddp:workers=7,per_node=4").find("multiple"), std::string::npos);
  EXPECT_NE(message_of(trace, "ddp:workers=2.5").find("whole"), std::string::npos);
  EXPECT_NE(message_of(trace, "parameter_server:mode=sometimes").find("async"), std::string::npos);
  EXPECT_NE(message_of(trace, "zero:stage=4").find("3"), std::string::npos);
  EXPECT_NE(message_of(trace, "dgc:density=2").find("density"), std::string::npos);
  EXPECT_NE(message_of(trace, "ddp:speed=2").find("bandwidth_gbps"), std::string::npos);
}

}  // namespace
}  // namespace forerun::whatif
