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

}  // namespace
}  // namespace forerun::compile
