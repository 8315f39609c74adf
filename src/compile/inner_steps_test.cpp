// What of elementwise ops decides whether their results are stored.
#include "compile/inner_steps.h"

#include <gtest/gtest.h>

namespace forerun::compile {
namespace {

TEST(InnerSteps, CountsNumbersWhereTheOtherInputIsOne) {
  EXPECT_EQ(inner_steps("mul", 2, false).count, 1);
  EXPECT_EQ(inner_steps("mul", 1, false).count, 2);
  EXPECT_EQ(inner_steps("exp", 1, false).count, 1);
}

TEST(InnerSteps, KnowsWhatLooksAtItsInputAgain) {
  EXPECT_TRUE(inner_steps("gelu", 1, false).looks_again);
  EXPECT_TRUE(inner_steps("silu_backward", 2, false).looks_again);
  EXPECT_FALSE(inner_steps("tanh_backward", 2, false).looks_again);
  EXPECT_FALSE(inner_steps("relu", 1, false).looks_again);
}

TEST(InnerSteps, TellsTheTwoFormsOfGeluApart) {
  EXPECT_LT(inner_steps("gelu", 1, false).count, inner_steps("gelu", 1, true).count);
  EXPECT_LT(inner_steps("gelu_backward", 2, false).count, inner_steps("gelu_backward", 2, true).count);
}

// Elements of a window, windows of an element; global pools and others have none.
TEST(InnerSteps, CountsLooksIntoWindows) {
  const Attributes pool = {{"kernel_size", Shape{3, 3}}, {"stride", Shape{2, 2}}};
  EXPECT_EQ(window_looks("max_pool2d_with_indices", pool), 9);
  EXPECT_EQ(window_looks("max_pool2d_with_indices_backward", pool), 4);
  EXPECT_EQ(window_looks("avg_pool2d_backward", {{"kernel_size", Shape{2}}, {"stride", Shape{2}}}), 1);
  EXPECT_EQ(window_looks("convolution", pool), 0);
  EXPECT_EQ(window_looks("mean", {}), 0);
}

}  // namespace
}  // namespace forerun::compile
