#include "lab/papers/neusight/traced_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun {
namespace {

constexpr const char* kTraceHeading =
    "op,target,meta,input_shapes,input_contiguous,fw_latency,bw_latency,output_shape\n";

TEST(TracedRun, ReadsOpsWithShapesAndLayers) {
  const auto ops = traced_ops_from_text(
      std::string(kTraceHeading) +
          "placeholder,input_ids,{},[],[],0.0,0.0,\"(8, 512)\"\n"
          "call_function,<built-in method addmm of type object at 0x1>,\"{'nn_module_stack': [('transformer.h.0', "
          "1)]}\","
          "\"[[3840], [1024, 1280], [1280, 3840]]\",\"[True, True, True]\",0.5,1.25,\"(1024, 3840)\"\n"
          "call_method,contiguous,{},\"[[1, 2]]\",[False],0.01,,\"(1, 2)\"\n",
      "made up");
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  ASSERT_EQ(ops->size(), 2U);
  const TracedOp& product = ops->front();
  EXPECT_EQ(product.target, "addmm");
  EXPECT_EQ(product.inputs, (std::vector<Shape>{{3840}, {1024, 1280}, {1280, 3840}}));
  EXPECT_EQ(product.output, (Shape{1024, 3840}));
  EXPECT_TRUE(product.in_layer);
  EXPECT_DOUBLE_EQ(product.forward_us, 500);
  EXPECT_DOUBLE_EQ(product.backward_us, 1250);
  EXPECT_FALSE(ops->back().contiguous_input);
  EXPECT_FALSE(ops->back().in_layer);
}

TEST(TracedRun, NamesTheLineOfABrokenRow) {
  for (const char* row : {"call_method,view,{},[],[],x,0,()\n", "call_method,view,{},[],[],-1,0,()\n",
                          "call_method,view,{},[],[],nan,0,()\n", "call_method\n"}) {
    const auto ops = traced_ops_from_text(std::string(kTraceHeading) + row, "made up");
    ASSERT_FALSE(ops.ok()) << row;
    EXPECT_NE(ops.error().message().find("line 2"), std::string::npos) << ops.error().message();
  }
  EXPECT_FALSE(traced_ops_from_text("", "made up").ok());
  EXPECT_FALSE(traced_ops_from_text("op,target\n", "made up").ok());
}

TEST(TracedRun, NamesOfFilesTellTheQuestion) {
  const std::filesystem::path folder = testing::TempDir() + "/traced_run_test";
  std::filesystem::create_directories(folder / "label/Tesla_T4");
  std::ofstream(folder / "label/Tesla_T4/bert_large-train-512-8.json")
      << R"({"num_layer": 24, "fw_latency": 2.5, "bwall_latency": 4})";
  std::ofstream(folder / "label/Tesla_T4/bert_large-inf-512-8-fusion.json") << "{}";
  const auto runs = read_traced_runs(folder.string());
  ASSERT_TRUE(runs.ok()) << runs.error().message();
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->front().model, "bert_large");
  EXPECT_EQ(runs->front().what(), "forward, backward");
  EXPECT_EQ(runs->front().length, 512);
  EXPECT_EQ(runs->front().batch, 8);
  EXPECT_DOUBLE_EQ(runs->front().measured_ms, 6.5);
  EXPECT_TRUE(runs->front().ops.empty());
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(read_traced_runs(folder.string()).ok());
}

}  // namespace
}  // namespace forerun
