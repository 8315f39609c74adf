// Optimizations on a small traced iteration whose answers are known.
#include "whatif/optimizations.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "device/catalogue.h"

namespace forerun::whatif {
namespace {

constexpr LaneIndex kMain = 0, kStream = 1;

// One iteration: `products` large matrix products of 1000 us, then Adam over `parameters` tensors, then a device sync.
Trace iteration(int products, int parameters, const std::string& type = "float") {
  Trace trace;
  trace.file = "by_hand.json";
  trace.gpu = "NVIDIA H200";
  trace.lanes = {{TraceLane::Kind::host_thread, 1, 100, NameId()}, {TraceLane::Kind::gpu_stream, 0, 7, NameId()}};
  const auto add = [&](EventKind kind, const std::string& name, LaneIndex lane, double start, double duration,
                       int64_t correlation = kNoNumber, uint32_t detail = kNoIndex) {
    trace.events.add({.start = static_cast<int64_t>(start * 1000),
                      .duration = static_cast<int64_t>(duration * 1000),
                      .name = trace.names.intern(name),
                      .kind = kind,
                      .lane = lane,
                      .correlation = correlation,
                      .detail = detail});
  };
  const auto detail = [&](const std::string& dims, const std::string& types) {
    OpDetail made;
    made.dims = trace.names.intern(dims);
    made.types = trace.names.intern(types);
    trace.ops.push_back(made);
    return static_cast<uint32_t>(trace.ops.size() - 1);
  };
  const uint32_t product = detail("[[8192, 4096], [4096, 4096]]", "[\"" + type + "\", \"" + type + "\"]");
  const uint32_t parameter = detail("[[64, 64], [64, 64], [64, 64], []]", R"(["float", "float", "float", "Scalar"])");
  double host = 0, gpu = 8;
  int64_t id = 0;
  const auto op = [&](const std::string& name, const std::string& kernel, double duration, uint32_t shapes) {
    ++id;
    add(EventKind::op, name, kMain, host, 10, kNoNumber, shapes);
    add(EventKind::runtime, "cudaLaunchKernel", kMain, host + 2, 5, id);
    gpu = std::max(gpu, host + 7);
    add(EventKind::kernel, kernel, kStream, gpu, duration, id);
    gpu += duration + 1;
    host += 20;
  };
  for (int i = 0; i < products; ++i) op("aten::mm", "sgemm_128x128", 1000, product);
  add(EventKind::annotation, "Optimizer.step#Adam.step", kMain, host, 20.0 * parameters);
  host += 1;
  for (int i = 0; i < parameters; ++i) op("aten::addcdiv_", "elementwise", 3, parameter);
  add(EventKind::runtime, "cudaDeviceSynchronize", kMain, host, std::max(3.0, gpu + 5 - host));
  sort_events(trace.events);
  return trace;
}

class OptimizationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = data_dir();
    ASSERT_TRUE(folder.ok()) << folder.error().message();
    const auto catalogue = load_devices(*folder / "devices");
    auto constants = load_analytic_constants(*folder / "cost/analytic.json");
    ASSERT_TRUE(catalogue.ok() && constants.ok());
    const auto device = catalogue->find("h200");
    ASSERT_TRUE(device.ok());
    timer_.emplace(*device, std::move(*constants), nullptr);
  }

  // Milliseconds of an iteration after the applications.
  double after(const Trace& trace, const std::vector<std::string>& applications) {
    auto edited = EditableIteration::of(trace, &*timer_);
    EXPECT_TRUE(edited.ok()) << edited.error().message();
    for (const std::string& text : applications) {
      const auto application = parse_application(text);
      EXPECT_TRUE(application.ok()) << application.error().message();
      const Status status = application->optimization->apply(*edited, application->parameters);
      EXPECT_TRUE(status.ok()) << status.error().message();
      EXPECT_FALSE(edited->assumptions.empty());
    }
    const auto time = edited->iteration_time();
    EXPECT_TRUE(time.ok()) << time.error().message();
    return milliseconds(*time);
  }

  // What the optimization answers on a GPU of that name.
  Status applied_on(const std::string& gpu, const std::string& text, std::vector<std::string>* assumptions = nullptr) {
    const auto catalogue = load_devices(*data_dir() / "devices");
    const auto constants = load_analytic_constants(*data_dir() / "cost/analytic.json");
    const OpTimer timer(*catalogue->find(gpu), *constants, nullptr);
    const Trace trace = iteration(10, 4);
    auto edited = EditableIteration::of(trace, &timer);
    EXPECT_TRUE(edited.ok());
    const Nanoseconds before = edited->device_busy();
    const auto application = parse_application(text);
    EXPECT_TRUE(application.ok());
    const Status status = application->optimization->apply(*edited, application->parameters);
    if (status.ok()) {
      EXPECT_EQ(edited->device_busy(), before) << gpu << ": " << text;
    }
    if (assumptions != nullptr) *assumptions = edited->assumptions;
    return status;
  }

  std::optional<OpTimer> timer_;
};

TEST_F(OptimizationsTest, TheIterationRepeatsWithoutTheProfilersLastWait) {
  EXPECT_NEAR(after(iteration(10, 4), {}), 10 * 1.001 + 4 * 0.004, 0.01);  // the GPU decides
  EXPECT_NEAR(after(iteration(1, 100), {}), 2.02, 0.05);                   // the host decides: 20 us an op
}

TEST_F(OptimizationsTest, AFasterKernelCountsWhereItDecides) {
  EXPECT_NEAR(after(iteration(10, 4), {"faster_kernel:match=sgemm,factor=2"}), 10 * 0.501 + 0.016, 0.01);
  EXPECT_NEAR(after(iteration(1, 100), {"faster_kernel:match=sgemm,factor=2"}), 2.02, 0.05);
}

TEST_F(OptimizationsTest, TwiceTheBatchIsTwiceTheWorkButNotTheUpdate) {
  EXPECT_NEAR(after(iteration(10, 4), {"batch:factor=2"}), 20.0 + 0.016, 0.05);
  EXPECT_NEAR(after(iteration(10, 4), {"batch:factor=0.5"}), 5.0 + 0.04, 0.05);
}

TEST_F(OptimizationsTest, PrecisionFollowsTheCostModel) {
  const double before = after(iteration(10, 4), {});
  const double tf32 = after(iteration(10, 4), {"tf32"});
  const double amp = after(iteration(10, 4), {"amp"});
  EXPECT_LT(tf32, before / 3);  // 67 TFLOPS against 495
  EXPECT_LT(amp, tf32);
  EXPECT_NEAR(after(iteration(10, 4), {"amp:rule=daydream"}), before / 3, 0.1);
  // The order of two changes of precision does not matter for what is reached.
  EXPECT_NEAR(after(iteration(10, 4), {"tf32", "amp"}), amp, 0.25 * amp);
}

TEST_F(OptimizationsTest, Tf32LeavesAutocastAsItIs) {
  for (const char* type : {"c10::BFloat16", "c10::Half"}) {
    const double before = after(iteration(10, 4, type), {});
    EXPECT_DOUBLE_EQ(after(iteration(10, 4, type), {"tf32"}), before) << type;
    EXPECT_DOUBLE_EQ(after(iteration(10, 4, type), {"amp"}), before) << type;  // it runs so already
  }
  const double amp = after(iteration(10, 4), {"amp"});
  EXPECT_DOUBLE_EQ(after(iteration(10, 4), {"amp", "tf32"}), amp);
}

TEST_F(OptimizationsTest, OnlyWhatTheGpuHasUnitsForIsPromised) {
  for (const char* gpu : {"v100", "t4", "rtx 2080 ti", "p100"}) {
    const Status amp = applied_on(gpu, "amp");
    ASSERT_FALSE(amp.ok()) << gpu;
    EXPECT_NE(amp.error().message().find("no bfloat16 units"), std::string::npos) << amp.error().message();
    std::vector<std::string> said;
    EXPECT_TRUE(applied_on(gpu, "tf32", &said).ok()) << gpu;
    ASSERT_EQ(said.size(), 1U);
    EXPECT_NE(said[0].find("no TF32 units"), std::string::npos) << said[0];
  }
}

TEST_F(OptimizationsTest, ATimeBeyondCountingIsAnError) {
  const Trace trace = iteration(10, 4);
  for (const char* text : {"batch:factor=1e9", "faster_kernel:match=sgemm,factor=1e-6"}) {
    auto edited = EditableIteration::of(trace, &*timer_);
    ASSERT_TRUE(edited.ok());
    const auto application = parse_application(text);
    ASSERT_TRUE(application.ok());
    Status status;
    for (int i = 0; i < 3 && status.ok(); ++i) {
      status = application->optimization->apply(*edited, application->parameters);
    }
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_NE(status.error().message().find("three years"), std::string::npos) << status.error().message();
  }
}

TEST_F(OptimizationsTest, FusingTheUpdateFreesTheHost) {
  const double before = after(iteration(1, 100), {});
  const double fused = after(iteration(1, 100), {"fused_adam"});
  const double each = after(iteration(1, 100), {"foreach_adam"});
  EXPECT_LT(fused, 0.7 * before);
  EXPECT_LT(fused, each);
  // Where the GPU decides only its part of the update goes.
  EXPECT_NEAR(after(iteration(10, 4), {"fused_adam"}), 10.01 + 0.02, 0.02);
}

TEST_F(OptimizationsTest, WithoutTheProfilerTheHostIsFaster) {
  const Trace trace = iteration(1, 100);
  auto edited = EditableIteration::of(trace, &*timer_);
  ASSERT_TRUE(edited.ok());
  ASSERT_TRUE(edited->remove_profiler().ok());
  EXPECT_NEAR(milliseconds(*edited->iteration_time()), 2.02 / kProfilerSlowdown, 0.05);
}

TEST_F(OptimizationsTest, WhatDoesNotApplyIsAnError) {
  const Trace trace = iteration(3, 0);
  auto edited = EditableIteration::of(trace, &*timer_);
  ASSERT_TRUE(edited.ok());
  EXPECT_FALSE(apply_fused_adam(*edited, {}).ok());
  const auto wrong = parse_application("faster_kernel:match=nothing_like_it");
  ASSERT_TRUE(wrong.ok());
  EXPECT_FALSE(wrong->optimization->apply(*edited, wrong->parameters).ok());
}

TEST(ParseApplicationTest, NamesWhatThereIs) {
  const auto batch = parse_application("batch:factor=2");
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->optimization->name, "batch");
  EXPECT_EQ(*batch->parameters.positive("factor", 1), 2);
  const auto unknown = parse_application("fused_adm");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("fused_adam"), std::string::npos) << unknown.error().message();
  EXPECT_FALSE(parse_application("batch:size=2").ok());
  EXPECT_FALSE(parse_application("batch:factor").ok());
  for (const char* refused : {"batch:factor=2,factor=3", "batch:factor=", "faster_kernel:match=,factor=2",
                              "gpu:name=", "ddp:workers=8,network=10gbe,workers=4", "amp:", "batch:factor=2,"}) {
    EXPECT_FALSE(parse_application(refused).ok()) << refused;
  }
  EXPECT_NE(parse_application("batch:factor=2,factor=3").error().message().find("twice"), std::string::npos);
  for (const char* bad :
       {"batch:factor=-1", "batch:factor=2x", "batch:factor=nan", "batch:factor=1e15", "batch:factor=1e-300"}) {
    const auto parsed = parse_application(bad);
    ASSERT_TRUE(parsed.ok());
    EXPECT_FALSE(parsed->parameters.positive("factor", 1).ok()) << bad;
  }
}

TEST(TracedOpTest, ConvolutionsBecomeGraphs) {
  TracedOp op;
  op.name = "aten::cudnn_convolution";
  op.inputs = {{{64, 3, 224, 224}, "float"}, {{64, 3, 7, 7}, "float"}};
  op.values = {"", "", "[3, 3]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"};
  const auto graph = graph_of(op, {Precision::amp_bf16, true});
  ASSERT_TRUE(graph.has_value());
  const Op& made = graph->ops().front();
  EXPECT_EQ(graph->name(made), "aten.convolution.default");
  const auto shape = graph->shape(graph->outputs(made)[0]);
  EXPECT_EQ(std::vector<int64_t>(shape.begin(), shape.end()), (std::vector<int64_t>{64, 64, 112, 112}));
  EXPECT_EQ(graph->tensor(graph->inputs(made)[0]).dtype, DType::bfloat16);
  op.inputs[1].shape = {64, 3};
  EXPECT_FALSE(graph_of(op, {}).has_value());
  op.name = "aten::made_up";
  EXPECT_FALSE(graph_of(op, {}).has_value());
}

}  // namespace
}  // namespace forerun::whatif
