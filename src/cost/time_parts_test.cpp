#include "cost/time_parts.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun {
namespace {

OpCost op(int64_t gpu, Bound bound, int64_t overlapped = 0) {
  return {.gpu = Nanoseconds(gpu), .overlapped = Nanoseconds(overlapped), .kernels = 1, .bound = bound};
}

TEST(TimeParts, OpsCountByWhatLimitsThemAndTheRestIsIdle) {
  const OpCost costs[] = {op(50, Bound::compute), op(30, Bound::memory), op(7, Bound::latency),
                          op(30, Bound::compute, 10), op(0, Bound::none)};
  const TimeParts parts = time_parts(costs, Nanoseconds(120));
  EXPECT_EQ(parts.computation.value, 70);
  EXPECT_EQ(parts.memory_access.value, 30);
  EXPECT_EQ(parts.latency.value, 7);
  EXPECT_EQ(parts.idle.value, 13);
  EXPECT_EQ(parts.total().value, 120);
}

TEST(TimeParts, ScaledPartsMakeUpTheWhole) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    const auto draw = [&] { return Nanoseconds(static_cast<int64_t>(random() % 1'000'000)); };
    const TimeParts parts{draw(), draw(), draw(), draw(), draw(), draw()};
    const Nanoseconds whole(static_cast<int64_t>(random() % (uint64_t{1} << 50U)));
    const TimeParts scaled = parts.of(whole);
    EXPECT_EQ(scaled.total(), whole);
    const double factor = static_cast<double>(whole.value) / static_cast<double>(parts.total().value);
    for (size_t i = 0; i < TimeParts::kCount; ++i) {
      const double expected = factor * static_cast<double>(parts.named()[i].second.value);
      EXPECT_NEAR(static_cast<double>(scaled.named()[i].second.value), expected, 1 + 1e-9 * expected);
    }
  }
  EXPECT_EQ(TimeParts().of(Nanoseconds(5)).idle.value, 5);
}

TEST(TimeParts, OpsThatTakeLongerThanTheTimeShareIt) {
  const OpCost costs[] = {op(60, Bound::compute), op(60, Bound::memory)};
  const TimeParts parts = time_parts(costs, Nanoseconds(100));
  EXPECT_EQ(parts.computation.value, 50);
  EXPECT_EQ(parts.memory_access.value, 50);
  EXPECT_EQ(parts.idle.value, 0);
}

}  // namespace
}  // namespace forerun
