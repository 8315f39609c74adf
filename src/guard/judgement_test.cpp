#include "guard/judgement.h"

#include <gtest/gtest.h>

namespace forerun::guard {
namespace {

constexpr const char* kNow = "0.1.0, models 1";

Guarded guarded(Rules rules, Figures figures = {.iteration_ms = 100, .reserved_gib = 10, .verdict = "fits"}) {
  return {.name = "one", .asked = "{}", .gpu = "A100", .rules = rules, .figures = std::move(figures)};
}

Baseline baseline(double iteration_ms, double reserved_gib, std::string predicted_by = kNow) {
  return {
      {.iteration_ms = iteration_ms, .reserved_gib = reserved_gib, .verdict = "fits"}, "{}", std::move(predicted_by)};
}

Verdict only_verdict(const GuardOutcome& outcome) {
  EXPECT_EQ(outcome.rules.size(), 1U);
  return outcome.rules.front().verdict;
}

TEST(Judgement, MoreThanTheShareAboveTheBaselineFails) {
  const Rules rules{.slower_than_baseline = 0.1};
  EXPECT_EQ(only_verdict(judge(guarded(rules), baseline(91, 10), kNow, false)), Verdict::holds);
  const GuardOutcome slower = judge(guarded(rules), baseline(90, 10), kNow, false);
  EXPECT_EQ(only_verdict(slower), Verdict::fails);
  EXPECT_FALSE(slower.passes());
  EXPECT_NEAR(*slower.rules[0].change(), 1.0 / 9, 1e-12);
  EXPECT_EQ(only_verdict(judge(guarded({.memory_above_baseline = 0.0}), baseline(1, 10), kNow, false)), Verdict::holds);
  EXPECT_EQ(only_verdict(judge(guarded({.memory_above_baseline = 0.05}), baseline(1, 9.5), kNow, false)),
            Verdict::fails);
}

TEST(Judgement, WithoutABaselineOnlyRulesAboutOneFail) {
  const GuardOutcome outcome = judge(guarded({.fits = true, .slower_than_baseline = 0.1, .iteration_ms_at_most = 100}),
                                     std::nullopt, kNow, false);
  ASSERT_EQ(outcome.rules.size(), 3U);
  EXPECT_EQ(outcome.rules[0].verdict, Verdict::holds);
  EXPECT_EQ(outcome.rules[1].verdict, Verdict::no_baseline);
  EXPECT_EQ(outcome.rules[2].verdict, Verdict::holds) << "the limit itself is within it";
  EXPECT_FALSE(outcome.passes());
  ASSERT_EQ(outcome.notes.size(), 1U);
  EXPECT_TRUE(judge(guarded({.fits = true}), std::nullopt, kNow, false).passes());
}

TEST(Judgement, AnotherForerunsBaselineBlamesNobody) {
  const Rules rules{.slower_than_baseline = 0.1};
  const GuardOutcome outcome = judge(guarded(rules), baseline(50, 10, "0.1.0, models 2"), kNow, false);
  EXPECT_EQ(only_verdict(outcome), Verdict::not_judged);
  EXPECT_TRUE(outcome.passes());
  ASSERT_EQ(outcome.notes.size(), 1U);
  EXPECT_NE(outcome.notes[0].find("models 2"), std::string::npos);
  const GuardOutcome same = judge(guarded(rules), baseline(100, 10, "0.1.0, models 2"), kNow, false);
  EXPECT_EQ(only_verdict(same), Verdict::holds) << "nothing changed";
  EXPECT_FALSE(judge(guarded({.iteration_ms_at_most = 99}), baseline(50, 10, "older"), kNow, false).passes())
      << "a limit needs no baseline";
}

TEST(Judgement, OnlyWhatSurelyFitsFits) {
  for (const char* verdict : {"may_not_fit", "does_not_fit"}) {
    EXPECT_EQ(only_verdict(judge(guarded({.fits = true}, {1, 1, verdict}), std::nullopt, kNow, false)), Verdict::fails);
  }
}

TEST(Judgement, MemoryOfARunThatDoesNotFitIsNotKnown) {
  const Figures figures{1, 5, "does_not_fit"};
  const GuardOutcome outcome = judge(guarded({.reserved_gib_at_most = 6}, figures), std::nullopt, kNow, false);
  EXPECT_EQ(only_verdict(outcome), Verdict::fails);
  EXPECT_EQ(outcome.notes.size(), 1U);
  EXPECT_EQ(only_verdict(judge(guarded({.memory_above_baseline = 1}, figures), baseline(1, 5), kNow, false)),
            Verdict::fails);
  const Baseline too_large{{1, 5, "does_not_fit"}, "{}", kNow};
  EXPECT_EQ(only_verdict(judge(guarded({.memory_above_baseline = 0}), too_large, kNow, false)), Verdict::holds);
}

TEST(Judgement, AnUpdateKeepsLimits) {
  const GuardOutcome outcome =
      judge(guarded({.slower_than_baseline = 0.1, .iteration_ms_at_most = 99}), baseline(50, 10), kNow, true);
  EXPECT_EQ(outcome.rules[0].verdict, Verdict::holds);
  EXPECT_EQ(*outcome.rules[0].before, 50) << "what changed is still told";
  EXPECT_EQ(outcome.rules[1].verdict, Verdict::fails);
}

TEST(Judgement, AnotherQuestionIsTold) {
  Guarded asked = guarded({.slower_than_baseline = 0.1});
  asked.asked = R"({"batch":128})";
  const GuardOutcome outcome = judge(asked, baseline(50, 10), kNow, false);
  ASSERT_EQ(outcome.notes.size(), 1U);
  EXPECT_NE(outcome.notes[0].find("batch"), std::string::npos);
}

}  // namespace
}  // namespace forerun::guard
