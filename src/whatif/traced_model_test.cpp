// The forward pass rebuilt from a trace: a small network whose graph is known, and the measured traces.
#include "whatif/traced_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "derive/iteration.h"
#include "ingest/kineto/kineto_reader.h"
#include "whatif/traced_call.h"

namespace forerun::whatif {
namespace {

// A trace of one forward pass, call by call, and of an update of parameters of these shapes.
class TraceOfCalls {
 public:
  TraceOfCalls() {
    trace_.file = "by_hand.json";
    trace_.lanes = {{TraceLane::Kind::host_thread, 1, 100, NameId()}};
    add("phase:forward", EventKind::annotation, 100'000);
  }

  TraceOfCalls& call(const std::string& name, const std::string& dims, const std::string& types,
                     const std::string& values) {
    OpDetail detail;
    detail.dims = trace_.names.intern(dims);
    detail.types = trace_.names.intern(types);
    detail.values = trace_.names.intern(values);
    trace_.ops.push_back(detail);
    add(name, EventKind::op, 10);
    trace_.events.detail.set(trace_.size() - 1, static_cast<uint32_t>(trace_.ops.size() - 1));
    trace_.events.sequence.set(trace_.size() - 1, sequence_++);
    now_ += 20;
    return *this;
  }

  TraceOfCalls& updates(const std::vector<std::string>& shapes) {
    now_ = std::max<int64_t>(now_, 200'000);
    add("Optimizer.step#Adam.step", EventKind::annotation, 100'000);
    for (const std::string& shape : shapes) call("aten::addcdiv_", "[" + shape + "]", R"(["float"])", R"([""])");
    return *this;
  }

  Result<TracedModel> model() {
    Trace copy = trace_;
    sort_events(copy.events);
    return traced_model(copy, link_events(copy));
  }

 private:
  void add(const std::string& name, EventKind kind, int64_t duration) {
    trace_.events.add({.start = now_ * 1000,
                       .duration = duration * 1000,
                       .name = trace_.names.intern(name),
                       .kind = kind,
                       .forward_thread = 0});
    now_ += kind == EventKind::annotation ? 1 : 0;
  }

  Trace trace_;
  int64_t now_ = 0, sequence_ = 1;
};

// x -> conv -> norm -> relu -> conv -> + relu's result -> pool -> flatten -> linear -> loss
TraceOfCalls residual_network() {
  TraceOfCalls trace;
  const std::string conv_types = R"(["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"])";
  const std::string conv_values = R"(["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"])";
  trace.call("aten::conv2d", "[[8, 3, 32, 32], [16, 3, 3, 3], [], [], [], [], []]", conv_types, conv_values)
      .call("aten::batch_norm", "[[8, 16, 32, 32], [16], [16], [16], [16], [], [], [], []]",
            R"(["float", "float", "float", "float", "float", "Scalar", "Scalar", "Scalar", "Scalar"])",
            R"(["", "", "", "", "", "True", "0.1", "1e-05", "True"])")
      .call("aten::relu_", "[[8, 16, 32, 32]]", R"(["float"])", R"([""])")
      .call("aten::conv2d", "[[8, 16, 32, 32], [16, 16, 3, 3], [], [], [], [], []]", conv_types, conv_values)
      .call("aten::add", "[[8, 16, 32, 32], [8, 16, 32, 32], []]", R"(["float", "float", "Scalar"])",
            R"(["", "", "1"])")
      .call("aten::adaptive_avg_pool2d", "[[8, 16, 32, 32], []]", R"(["float", "ScalarList"])", R"(["", "[1, 1]"])")
      .call("aten::view", "[[8, 16, 1, 1], []]", R"(["float", "ScalarList"])", R"(["", "[8, 16]"])")
      .call("aten::linear", "[[8, 16], [10, 16], [10]]", R"(["float", "float", "float"])", R"(["", "", ""])")
      .call("aten::cross_entropy_loss", "[[8, 10], [8], [], [], [], []]",
            R"(["float", "long int", "", "Scalar", "Scalar", "Scalar"])", R"(["", "", "", "1", "-100", "0."])");
  return trace;
}

Shape shape_of(const Graph& graph, TensorId id) {
  const auto shape = graph.shape(id);
  return {shape.begin(), shape.end()};
}

TEST(TracedModelTest, ANetworkIsRebuiltWithItsResidual) {
  const auto model = residual_network().model();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->calls, 8U);
  EXPECT_EQ(model->input.batch, 8);
  const auto graph = model->forward(1);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->parameter_count(), 16 * 3 * 9 + 16 + 16 + 16 * 16 * 9 + 10 * 16 + 10);
  // The sum reads the second convolution and the activation, which the first one's norm became.
  const Op& sum = graph->ops()[4];
  ASSERT_EQ(graph->name(sum), "aten.add.Tensor");
  EXPECT_EQ(graph->inputs(sum)[0], graph->outputs(graph->ops()[3])[0]);
  EXPECT_EQ(graph->inputs(sum)[1], graph->outputs(graph->ops()[2])[0]);
  ASSERT_EQ(graph->results().size(), 1U);
  EXPECT_EQ(shape_of(*graph, graph->results()[0]), (Shape{8, 10}));
  // Every parameter gets a gradient: nothing is cut off from the loss.
  TrainingSetup setup;
  setup.optimizer = {.kind = OptimizerKind::adam, .impl = OptimizerImpl::forloop};
  const auto iteration = derive::derive_iteration(*graph, model->input, setup);
  ASSERT_TRUE(iteration.ok()) << iteration.error().message();
  const auto updates = std::count_if(iteration->ops().begin(), iteration->ops().end(), [&](const Op& op) {
    return iteration->name(op).find("addcdiv_") != std::string::npos;
  });
  EXPECT_EQ(updates, 6);
}

TEST(TracedModelTest, AnotherBatchGrowsInputsAndNamedSizesButNoParameter) {
  const auto model = residual_network().model();
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto once = model->forward(1), twice = model->forward(2), half = model->forward(0.5);
  ASSERT_TRUE(once.ok() && twice.ok() && half.ok());
  EXPECT_EQ(twice->parameter_count(), once->parameter_count());
  EXPECT_EQ(shape_of(*twice, twice->results()[0]), (Shape{16, 10}));
  EXPECT_EQ(shape_of(*half, half->results()[0]), (Shape{4, 10}));
}

TEST(TracedModelTest, PassesOfOneIterationShareTheirCalls) {
  TraceOfCalls trace;
  const auto pass = [&] {
    trace.call("aten::linear", "[[4, 32], [64, 32], []]", R"(["float", "float", ""])", R"(["", "", ""])")
        .call("aten::relu", "[[4, 64]]", R"(["float"])", R"([""])")
        .call("aten::cross_entropy_loss", "[[4, 64], [4]]", R"(["float", "long int"])", R"(["", ""])");
  };
  pass();
  pass();
  const auto model = trace.model();
  ASSERT_TRUE(model.ok()) << model.error().message();
  ASSERT_EQ(model->calls, 2U);
  std::vector<int> counts(3);
  for (const auto& [event, call] : model->call_of) ++counts.at(call);
  EXPECT_EQ(counts, (std::vector<int>{2, 2, 2}));
}

TEST(TracedModelTest, AWeightThatTheOptimizerHasOnceIsTied) {
  TraceOfCalls trace;
  trace
      .call("aten::embedding", "[[100, 32], [4, 7], [], [], []]",
            R"(["float", "long int", "Scalar", "Scalar", "Scalar"])", R"(["", "", "-1", "False", "False"])")
      .call("aten::linear", "[[4, 7, 32], [100, 32], []]", R"(["float", "float", ""])", R"(["", "", ""])")
      .updates({"[100, 32]"});
  const auto tied = trace.model();
  ASSERT_TRUE(tied.ok()) << tied.error().message();
  EXPECT_EQ(tied->forward(1)->parameter_count(), 3200);
  EXPECT_EQ(tied->setup.optimizer.kind, OptimizerKind::adam);
  EXPECT_EQ(tied->setup.optimizer.impl, OptimizerImpl::forloop);
}

TEST(TracedModelTest, AnUnknownOpTakesTheShapeThatTheNextCallReads) {
  TraceOfCalls trace;
  trace.call("aten::linear", "[[4, 32], [64, 32], []]", R"(["float", "float", ""])", R"(["", "", ""])")
      .call("aten::fold_somehow", "[[4, 64]]", R"(["float"])", R"([""])")
      .call("aten::linear", "[[4, 16], [8, 16], []]", R"(["float", "float", ""])", R"(["", "", ""])");
  const auto model = trace.model();
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto graph = model->forward(2);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(shape_of(*graph, graph->outputs(graph->ops()[1])[0]), (Shape{8, 16}));
  EXPECT_EQ(graph->inputs(graph->ops()[2])[0], graph->outputs(graph->ops()[1])[0]);
}

TEST(TracedModelTest, BrokenCallsAreErrorsAndNoCrash) {
  TraceOfCalls misfit;
  misfit.call("aten::linear", "[[4, 32], [64, 33], []]", R"(["float", "float", ""])", R"(["", "", ""])");
  EXPECT_FALSE(misfit.model().ok());
  TraceOfCalls lacking;
  lacking.call("aten::bmm", "[[4, 3, 2]]", R"(["float"])", R"([""])")
      .call("aten::lstm", "[[4, 3, 2]]", R"(["float"])", R"([""])");
  EXPECT_FALSE(lacking.model().ok());
  TraceOfCalls negative;
  negative.call("aten::view", "[[4, -3], []]", R"(["float", "ScalarList"])", R"(["", "[-12]"])");
  EXPECT_FALSE(negative.model().ok());
  EXPECT_FALSE(TraceOfCalls().model().ok());
}

TEST(TracedModelTest, MeasuredTracesGiveEveryParameterItsUpdate) {
  const std::string folder = FORERUN_DATA_DIR "/h200/whatif_traces";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto trace = read_kineto(entry.path().string());
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    const auto model = traced_model(*trace, link_events(*trace));
    ASSERT_TRUE(model.ok()) << model.error().message();
    const auto forward = model->forward(1);
    ASSERT_TRUE(forward.ok()) << forward.error().message();
    const auto graph = derive::derive_iteration(*forward, model->input, model->setup);
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    int64_t traced = 0, derived = 0;
    for (EventIndex i = 0; i < trace->size(); ++i) traced += trace->name(i) == "aten::addcdiv_" ? 1 : 0;
    for (const Op& op : graph->ops()) derived += graph->name(op).find("addcdiv_") != std::string::npos ? 1 : 0;
    EXPECT_EQ(derived, traced) << entry.path();
  }
}

}  // namespace
}  // namespace forerun::whatif
