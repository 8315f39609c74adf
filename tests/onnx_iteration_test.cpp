// From ONNX to a whole training iteration: what the importer makes, derivation must take.
#include <gtest/gtest.h>

#include "derive/iteration.h"
#include "graph/graph.h"
#include "ingest/onnx/onnx_random_model.h"
#include "ingest/onnx/onnx_reader.h"

namespace forerun {
namespace {

Result<Graph> iteration_of(const OnnxModel& model, Precision precision = Precision::fp32) {
  TrainingSetup setup;
  setup.precision = precision;
  return derive::derive_iteration(model.forward, model.input, setup, derive::DispatchTarget{});
}

int64_t count_named(const Graph& graph, std::string_view name, Phase phase) {
  int64_t count = 0;
  for (const Op& op : graph.ops()) count += graph.name(op) == name && op.phase == phase ? 1 : 0;
  return count;
}

TEST(OnnxIteration, ExampleCnn) {
  const auto model = read_onnx(std::string(FORERUN_SOURCE_DIR) + "/examples/onnx/small_cnn.onnx", {.batch = 32});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto graph = iteration_of(*model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_TRUE(verify(*graph).ok()) << verify(*graph).error().message();
  EXPECT_EQ(count_named(*graph, "aten.convolution_backward.default", Phase::backward), 2);
  EXPECT_EQ(count_named(*graph, "aten.max_pool2d_with_indices_backward.default", Phase::backward), 2);
  EXPECT_EQ(graph->parameter_count(), model->forward.parameter_count());
}

TEST(OnnxIteration, ExampleTransformerBlock) {
  const auto model = read_onnx(std::string(FORERUN_SOURCE_DIR) + "/examples/onnx/transformer_block.onnx",
                               {.batch = 2, .dims = {{"length", 16}}});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto graph = iteration_of(*model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_TRUE(verify(*graph).ok()) << verify(*graph).error().message();
  EXPECT_EQ(count_named(*graph, "aten.native_layer_norm_backward.default", Phase::backward), 2);
  EXPECT_EQ(count_named(*graph, "aten.embedding_dense_backward.default", Phase::backward), 1);
  EXPECT_EQ(count_named(*graph, "aten.addmm.default", Phase::forward), 6);
}

// Whether the model was sound and gave an iteration, which must hold together; an Error is fine, a failed CHECK is not.
bool derives(const Result<OnnxModel>& model, Precision precision) {
  if (!model) return false;
  const auto graph = iteration_of(*model, precision);
  if (!graph) return false;
  EXPECT_TRUE(verify(*graph).ok()) << verify(*graph).error().message();
  return true;
}

TEST(OnnxIteration, OneOpOfEachKind) {
  int derived = 0;
  for (const std::string& type : ingest::all_op_types()) {
    for (uint32_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(type + " " + std::to_string(seed));
      const Precision precision = seed % 2 == 0 ? Precision::fp32 : Precision::amp_bf16;
      derived += derives(ingest::RandomModel(seed).make({type}).read(), precision) ? 1 : 0;
    }
  }
  EXPECT_GT(derived, 100);
}

TEST(OnnxIteration, OpsTogether) {
  int derived = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    const Precision precision = seed % 2 == 0 ? Precision::fp32 : Precision::amp_bf16;
    derived += derives(ingest::RandomModel(seed).make(ingest::all_op_types()).read(), precision) ? 1 : 0;
  }
  EXPECT_GT(derived, 50);
}

}  // namespace
}  // namespace forerun
