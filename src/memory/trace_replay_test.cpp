#include "memory/trace_replay.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

constexpr int64_t kUnitsPerMiB = 2048;

// Two segments, the later one at the lower address: of equal free blocks the second segment's is taken first.
AllocatorTrace two_segments() {
  AllocatorTrace trace;
  trace.address_base = 4096;
  const int64_t high = 1000 * kUnitsPerMiB;
  const int64_t mib = kMebibyte;
  trace.events = {{'S', high, 12 * mib, 0}, {'a', high, 12 * mib, 0}, {'S', 0, 12 * mib, 0}, {'a', 0, 12 * mib, 0},
                  {'r', high, 12 * mib, 0}, {'f', high, 12 * mib, 0}, {'r', 0, 12 * mib, 0}, {'f', 0, 12 * mib, 0},
                  {'a', 0, 11 * mib, 0},    {'r', 0, 11 * mib, 0},    {'f', 0, 11 * mib, 0}};
  return trace;
}

TEST(TraceReplay, PlacesBlocksWhereTheyWere) {
  const TraceReplay replay = replay_trace(two_segments());
  EXPECT_TRUE(replay.true_addresses);
  EXPECT_EQ(replay.misplaced, 0);
  EXPECT_EQ(replay.odd_segments, 0);
  EXPECT_EQ(replay.events, 9);
  EXPECT_EQ(replay.figures.reserved.peak, 24 * kMebibyte);
  EXPECT_EQ(replay.figures.allocated.current, 0);
}

TEST(TraceReplay, TellsWhatIsElsewhere) {
  AllocatorTrace trace = two_segments();
  trace.events[8].address = 1000 * kUnitsPerMiB;
  EXPECT_EQ(replay_trace(trace).misplaced, 1);
  trace = two_segments();
  trace.events.erase(trace.events.begin() + 2);  // a segment that the simulation takes all the same
  const TraceReplay replay = replay_trace(trace);
  EXPECT_EQ(replay.odd_segments, 1);
  EXPECT_EQ(replay.figures.segments.peak, 2);
}

// Where the recorded allocator gave segments back to get a new one, so does the simulated one.
TEST(TraceReplay, FollowsRetries) {
  AllocatorTrace trace = two_segments();
  const int64_t mib = kMebibyte;
  trace.events.push_back({'X', 0, 12 * mib, 0});
  trace.events.push_back({'X', 1000 * kUnitsPerMiB, 12 * mib, 0});
  trace.events.push_back({'S', 512, 20 * mib, 0});
  trace.events.push_back({'a', 512, 20 * mib, 0});
  const TraceReplay replay = replay_trace(trace);
  EXPECT_EQ(replay.figures.retries, 1);
  EXPECT_EQ(replay.figures.reserved.current, 20 * mib);
  EXPECT_EQ(replay.misplaced, 0);
}

TEST(TraceReplay, HoldsBlocksThatOtherStreamsUse) {
  AllocatorTrace trace;
  trace.events = {{'S', 0, 2 * kMebibyte, 0}, {'a', 0, 512, 0}, {'r', 0, 512, 0}, {'a', 1, 512, 0}, {'f', 0, 512, 0}};
  const TraceReplay replay = replay_trace(trace);
  EXPECT_EQ(replay.figures.allocated.peak, 512);
  EXPECT_EQ(replay.figures.active.peak, 1024);
}

TEST(TraceReplay, SurvivesSenselessTraces) {
  AllocatorTrace trace;
  trace.address_base = 0;
  const int64_t far = INT64_MAX;
  trace.events = {{'S', far, -1, 0}, {'a', far, -5, 0}, {'r', far, -5, 0}, {'a', far, 7, 0}, {'a', far, 7, 1},
                  {'f', far, 7, 0},  {'X', far, 1, 0},  {'a', 1, far, 0},  {'M', 0, 0, 0},   {'r', 2, 1, 0}};
  const TraceReplay replay = replay_trace(trace, {}, INT64_MAX);
  EXPECT_EQ(replay.figures.requested.current, 14);
  EXPECT_EQ(replay.figures.out_of_memory, 3);
}

TEST(TraceReplay, CountsWhatWasThereBefore) {
  const TraceReplay replay = replay_trace({}, {}, 1024);
  EXPECT_EQ(replay.figures.requested.current, 8);
  EXPECT_EQ(replay.figures.allocated.current, 1024);
  EXPECT_EQ(replay.odd_segments, 0);
}

TEST(TraceReplay, PassesOverBlocksFromBefore) {
  AllocatorTrace trace;
  trace.events = {{'r', 7, 512, 0}, {'f', 7, 512, 0}, {'a', 7, 512, 0}};
  EXPECT_EQ(replay_trace(trace).figures.allocated.current, 512);
}

}  // namespace
}  // namespace forerun
