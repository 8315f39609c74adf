#include "lab/papers/neusight/model_ops.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

constexpr const char* kModelOpHeading = "op,target,input_shapes,fw_latency,bw_latency,output_shape\n";

TEST(ModelOps, ReadsProductsSoftmaxAndNorms) {
  const auto ops = model_ops_from_text(
      std::string(kModelOpHeading) +
          "placeholder,input_ids,[],0,0,\"(8, 512)\"\n"
          "call_module,bert.encoder.layer.0.intermediate.dense,\"[[8, 512, 1024]]\",2.5,5,\"(8, 512, 4096)\"\n"
          "call_function,<built-in method addmm of type object at 0x1>,\"[[12], [6, 4], [4, 12]]\",1,2,\"(6, 12)\"\n"
          "call_function,<built-in method bmm of type object at 0x1>,\"[[2, 3, 4], [2, 4, 5]]\",1,2,\"(2, 3, 5)\"\n"
          "call_function,<function softmax at 0x1>,\"[[2, 3, 4]]\",1,2,\"(2, 3, 4)\"\n"
          "call_module,transformer.ln_f,\"[[2, 3, 4]]\",1,2,\"(2, 3, 4)\"\n"
          "call_module,transformer.drop,\"[[2, 3, 4]]\",1,2,\"(2, 3, 4)\"\n"
          "call_function,<built-in method matmul of type object>,\"[[2, 2, 3, 4], [2, 2, 4, 3]]\",1,2,\"(2, 2, 3, "
          "3)\"\n",
      "made up");
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  ASSERT_EQ(ops->size(), 5U);
  EXPECT_EQ((*ops)[0].sample.op, "aten.addmm.default");
  EXPECT_DOUBLE_EQ((*ops)[0].sample.us, 2500);
  EXPECT_EQ((*ops)[0].sample.inputs[1]->shape, (Shape{4096, 1024}));
  EXPECT_EQ((*ops)[0].sample.outputs[0]->shape, (Shape{4096, 4096}));
  EXPECT_EQ((*ops)[1].sample.inputs[1]->shape, (Shape{6, 4}));
  EXPECT_EQ((*ops)[1].sample.outputs[0]->shape, (Shape{6, 12}));
  EXPECT_EQ((*ops)[2].sample.inputs[1]->shape, (Shape{2, 4, 5}));
  EXPECT_EQ((*ops)[3].sample.inputs[0]->shape, (Shape{6, 4}));
  EXPECT_EQ((*ops)[4].sample.op, "aten.native_layer_norm.default");
}

TEST(ModelOps, NamesTheLineOfABrokenRow) {
  for (const char* row : {"call_module,a.dense,\"[[2, 3]]\",x,0,\"(2, 3)\"\n", "call_module,a.dense\n",
                          "call_module,a.dense,\"[[2, 99999999999999999999]]\",1,0,\"(2, 3)\"\n",
                          "call_module,a.dense,\"[[2, 3]]\",-1,0,\"(2, 3)\"\n"}) {
    const auto ops = model_ops_from_text(std::string(kModelOpHeading) + row, "made up");
    ASSERT_FALSE(ops.ok()) << row;
    EXPECT_NE(ops.error().message().find("line 2"), std::string::npos) << ops.error().message();
  }
  EXPECT_FALSE(model_ops_from_text("", "made up").ok());
  EXPECT_FALSE(model_ops_from_text("op,target\n", "made up").ok());
}

}  // namespace
}  // namespace forerun
