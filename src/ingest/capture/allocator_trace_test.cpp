#include "ingest/capture/allocator_trace.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

std::string verdict(const std::vector<AllocatorEvent>& events, bool earlier = false) {
  AllocatorTrace trace;
  trace.events = events;
  const Status status = check(trace, earlier);
  return status.ok() ? "" : status.error().what;
}

TEST(AllocatorTrace, TakesBlocksAndSegmentsThatComeAndGo) {
  EXPECT_EQ(verdict({{'S', 0, 4096}, {'a', 0, 100}, {'a', 1, 50}, {'r', 0, 100}, {'f', 0, 100}, {'a', 0, 70}}), "");
  EXPECT_EQ(verdict({{'S', 0, 4096}, {'X', 0, 4096}, {'S', 0, 8192}, {'M', 3, 1}, {'U', 9, 1}, {'O', 0, 5}}), "");
}

TEST(AllocatorTrace, SaysWhichEventDoesNotFit) {
  EXPECT_EQ(verdict({{'a', 1, 8}, {'a', 1, 8}}), "event 1 of alloc_trace allocates block 1, which is live");
  EXPECT_EQ(verdict({{'r', 1, 8}}), "event 0 of alloc_trace frees block 1, which was never allocated");
  EXPECT_EQ(verdict({{'f', 1, 8}}), "event 0 of alloc_trace frees block 1, which was never allocated");
  EXPECT_EQ(verdict({{'f', 1, 8}}, true), "") << "it may have been there before";
  EXPECT_EQ(verdict({{'a', 1, 8}, {'f', 1, 8}, {'f', 1, 8}}), "event 2 of alloc_trace frees block 1 a second time");
  EXPECT_EQ(verdict({{'a', 1, 8}, {'r', 1, 8}, {'r', 1, 8}}),
            "event 2 of alloc_trace asks to free block 1 a second time");
  EXPECT_EQ(verdict({{'a', 1, 8}, {'r', 1, 9}}), "event 1 of alloc_trace frees 9 bytes of block 1, which has 8");
  EXPECT_EQ(verdict({{'X', 1, 8}}), "event 0 of alloc_trace frees segment 1, which was never allocated");
}

TEST(AllocatorTrace, ChecksMarks) {
  AllocatorTrace trace;
  trace.events = {{'a', 1, 8}, {'a', 2, 8}};
  trace.marks = {{0, "model"}, {2, "end"}};
  EXPECT_TRUE(check(trace, false).ok());
  trace.marks = {{1, "model"}, {0, "end"}};
  EXPECT_FALSE(check(trace, false).ok());
  trace.marks = {{3, "model"}};
  EXPECT_FALSE(check(trace, false).ok());
}

}  // namespace
}  // namespace forerun
