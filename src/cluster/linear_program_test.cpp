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

// Small whole numbers and few distinct ones, so that most programs have many optima: things of some value on machines with
// room for some, each thing once at most.
LinearProgram random_program(uint64_t seed, std::vector<double>& last) {
  std::mt19937_64 random(seed);
  const size_t things = 3 + random() % 20;
  const size_t machines = 1 + random() % 4;
  LinearProgram program;
  std::vector<LinearProgram::Terms> room(machines);
  for (size_t thing = 0; thing < things; ++thing) {
    LinearProgram::Terms one;
    const auto size = static_cast<double>(1 + random() % 3);
    for (size_t machine = 0; machine < machines; ++machine) {
      const int variable = program.add_variable(static_cast<double>(1 + random() % 2) * size);
      one.emplace_back(variable, 1);
      room[machine].emplace_back(variable, size);
      last.push_back(tie_weight(thing, things) * tie_weight(machine, machines));
    }
    program.add_row(0, 1, one);
  }
  for (const LinearProgram::Terms& terms : room) program.add_row(0, static_cast<double>(1 + random() % 9), terms);
  return program;
}

TEST(LinearProgram, OneAnswerInWhateverOrderTheSolverSeesIt) {
  int apart = 0;  // programs of which an order alone changes the answer, without a last objective
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<double> last;
    LinearProgram program = random_program(seed, last);
    const auto any = program.maximize();
    bool same = true;
    for (uint64_t shuffle = 1; shuffle <= 5; ++shuffle) {
      const auto other = program.maximize(shuffle);
      for (size_t i = 0; i < any->size(); ++i) same = same && std::abs((*any)[i] - (*other)[i]) < 1e-6;
    }
    apart += same ? 0 : 1;
    program.then_maximize(last);
    const auto found = program.maximize();
    ASSERT_TRUE(found);
    for (uint64_t shuffle = 1; shuffle <= 5; ++shuffle) {
      const auto other = program.maximize(shuffle);
      ASSERT_TRUE(other);
      for (size_t i = 0; i < found->size(); ++i) {
        ASSERT_EQ(steady((*found)[i]), steady((*other)[i])) << "seed " << seed << ", variable " << i;
      }
    }
  }
  EXPECT_GT(apart, 50);
}

TEST(LinearProgram, LaterObjectivesDoNotHarmEarlierOnes) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::vector<double> last;
    LinearProgram program = random_program(seed, last);
    const auto value = [&](const std::vector<double>& values, const std::vector<double>& weights) {
      double sum = 0;
      for (size_t i = 0; i < weights.size(); ++i) sum += values[i] * weights[i];
      return sum;
    };
    std::vector<double> first(last.size());
    std::mt19937_64 random(seed);
    for (double& weight : first) weight = static_cast<double>(random() % 3);
    LinearProgram asked = random_program(seed, last);
    asked.then_maximize(first);
    const auto alone = asked.maximize();
    asked.then_maximize(std::vector<double>(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(first.size())));
    const auto all = asked.maximize();
    ASSERT_TRUE(alone && all);
    EXPECT_NEAR(value(*alone, first), value(*all, first), 1e-6) << seed;
  }
}

TEST(LinearProgram, RoundsToStepsThatNoSmallFractionLiesBetween) {
  EXPECT_EQ(steady(1.0 / 3 + 1e-12), steady(1.0 / 3 - 1e-12));
  EXPECT_EQ(steady(1.0 / 128 + 1e-12), 1.0 / 128);  // halfway between two millionths
  EXPECT_EQ(steady(-1e-12), 0.0);
}

}  // namespace
}  // namespace forerun::cluster
