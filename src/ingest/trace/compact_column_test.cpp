#include "ingest/trace/compact_column.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "ingest/trace/trace.h"

namespace forerun {
namespace {

TEST(CompactColumn, HoldsWhatAVectorHolds) {
  constexpr int64_t kEdges[] = {0,     1,      -1,      127,       128,         -128,      -129,
                                32767, -32769, 1 << 30, INT32_MAX, -2147483649, INT64_MIN, INT64_MAX};
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    CompactColumn<int64_t> column;
    std::vector<int64_t> plain;
    const size_t kinds = 1 + seed % std::size(kEdges);
    for (size_t i = 0; i < 200; ++i) {
      const int64_t number = kEdges[random() % kinds];
      if (i % 5 == 4) {
        const size_t at = random() % plain.size();
        column.set(at, number);
        plain[at] = number;
      } else {
        column.push_back(number);
        plain.push_back(number);
      }
    }
    ASSERT_EQ(column.size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(column[i], plain[i]) << seed;
    CompactColumn<int64_t> twice = column;
    twice.append(column, [](int64_t number) { return number / 2; });
    std::vector<uint32_t> order(plain.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(order.size() - 1 - i);
    column.permute(order);
    for (size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(twice[i], plain[i]);
      ASSERT_EQ(twice[plain.size() + i], plain[i] / 2);
      ASSERT_EQ(column[i], plain[plain.size() - 1 - i]);
    }
  }
}

TEST(CompactColumn, NoIndexAndNoNameTakeOneByte) {
  CompactColumn<uint32_t> indices;
  CompactColumn<NameId> names;
  for (size_t i = 0; i < 1024; ++i) {
    indices.push_back(kNoIndex);
    names.push_back(NameId());
  }
  EXPECT_EQ(indices[1000], kNoIndex);
  EXPECT_FALSE(names[1000].valid());
  EXPECT_LE(indices.memory() + names.memory(), 2048U);
  indices.push_back(kNoIndex - 1);
  indices.push_back(uint32_t{1} << 31);
  names.push_back(NameId(4'000'000'000U));
  EXPECT_EQ(indices[1024], kNoIndex - 1);
  EXPECT_EQ(indices.back(), uint32_t{1} << 31);
  EXPECT_EQ(names.back(), NameId(4'000'000'000U));
  EXPECT_EQ(indices[0], kNoIndex);
}

// The order that comparing rows gives.
TEST(SortEvents, ByStartThenTheLongerThenAsTheyCame) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    TraceEvents events;
    const uint64_t range = seed % 4 == 0 ? 5 : seed % 4 == 1 ? 5000 : seed % 4 == 2 ? uint64_t{1} << 40 : UINT64_MAX;
    const auto count = static_cast<uint32_t>(1 + random() % 300);
    for (uint32_t i = 0; i < count; ++i) {
      const auto start = static_cast<int64_t>(range == UINT64_MAX ? random() : random() % range);
      events.add({.start = start, .duration = static_cast<int64_t>(random() % 3), .name = NameId(i), .lane = i});
    }
    std::vector<uint32_t> order(events.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const TraceEvents before = events;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return before.start[a] != before.start[b] ? before.start[a] < before.start[b]
                                                : before.duration[a] > before.duration[b];
    });
    sort_events(events);
    for (uint32_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(events.name[i], NameId(order[i])) << seed;
      ASSERT_EQ(events.start[i], before.start[order[i]]);
      ASSERT_EQ(events.lane[i], order[i]);
    }
  }
}

}  // namespace
}  // namespace forerun
