#include "cluster/linear_program.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun::cluster {
namespace {

TEST(LinearProgram, FindsACorner) {
  LinearProgram program;  // 3x + 2y, x + y <= 4, x + 3y <= 6, x <= 3
  const int x = program.add_variable(3, 0, 3);
  const int y = program.add_variable(2);
  program.add_row(-LinearProgram::kUnbounded, 4, {{x, 1}, {y, 1}});
  program.add_row(-LinearProgram::kUnbounded, 6, {{x, 1}, {y, 3}});
  const auto found = program.maximize();
  ASSERT_TRUE(found);
  EXPECT_NEAR((*found)[x], 3, 1e-9);
  EXPECT_NEAR((*found)[y], 1, 1e-9);
}

TEST(LinearProgram, SaysWhereThereIsNoAnswer) {
  LinearProgram unbounded;
  unbounded.add_variable(1);
  EXPECT_FALSE(unbounded.maximize());
  LinearProgram impossible;
  const int x = impossible.add_variable(1, 0, 1);
  impossible.add_row(2, LinearProgram::kUnbounded, {{x, 1}});
  EXPECT_FALSE(impossible.maximize());
}

// A knapsack of whole things against trying them all.
TEST(LinearProgram, WholeVariablesEqualTryingAll) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<int> value(8), weight(8);
    LinearProgram program;
    LinearProgram::Terms terms;
    for (size_t i = 0; i < 8; ++i) {
      value[i] = static_cast<int>(random() % 20 + 1);
      weight[i] = static_cast<int>(random() % 10 + 1);
      terms.emplace_back(program.add_variable(value[i], 0, 1, true), weight[i]);
    }
    program.add_row(0, 20, terms);
    int best = 0;
    for (int taken = 0; taken < 256; ++taken) {
      int values = 0, weights = 0;
      for (size_t i = 0; i < 8; ++i) {
        if ((taken >> i & 1) == 0) continue;
        values += value[i];
        weights += weight[i];
      }
      if (weights <= 20) best = std::max(best, values);
    }
    const auto found = program.maximize();
    ASSERT_TRUE(found);
    double sum = 0;
    for (size_t i = 0; i < 8; ++i) sum += (*found)[i] * value[i];
    EXPECT_NEAR(sum, best, 1e-6);
  }
}

}  // namespace
}  // namespace forerun::cluster
