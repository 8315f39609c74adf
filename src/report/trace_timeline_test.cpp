#include "report/trace_timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace forerun {
namespace {

// A thread with nested ops and a stream with kernels, at random times.
Trace random_trace(unsigned seed, int kernels) {
  std::mt19937 random(seed);
  Trace trace;
  trace.lanes = {{TraceLane::Kind::host_thread, 1, 7, {}}, {TraceLane::Kind::gpu_stream, 0, 3, {}}};
  const NameId op = trace.names.intern("op"), inner = trace.names.intern("inner"),
               kernel = trace.names.intern("kernel");
  int64_t host = 1000, gpu = 1500;
  for (int i = 0; i < kernels; ++i) {
    const int64_t length = 20 + static_cast<int64_t>(random() % 400);
    trace.events.add({.start = host, .duration = length, .name = op, .kind = EventKind::op, .lane = 0});
    trace.events.add({.start = host + 2, .duration = length / 2, .name = inner, .kind = EventKind::runtime, .lane = 0});
    trace.events.add({.start = gpu, .duration = length, .name = kernel, .kind = EventKind::kernel, .lane = 1});
    host += length + static_cast<int64_t>(random() % 50);
    gpu += length + static_cast<int64_t>(random() % 90);
  }
  sort_events(trace.events);
  return trace;
}

TEST(TraceTimeline, EveryEventIsInOnePieceAndNoPieceIsShorterThanItsEvents) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Trace trace = random_trace(seed, 200);
    const TimelineRows rows(trace);
    for (const int64_t px : {1, 10, 300, 100000}) {
      const auto lanes = rows.lanes(trace, {.from = 0, .to = rows.length(), .px = px});
      ASSERT_EQ(lanes.size(), 3U);
      int64_t events = 0;
      for (const TimelineLane& lane : lanes) {
        EXPECT_LE(lane.pieces.size(), static_cast<size_t>(px) + 1);
        for (const TimelinePiece& piece : lane.pieces) {
          events += piece.events;
          EXPECT_LE(piece.start, trace.events.start[piece.longest] - 1000);
          EXPECT_GE(piece.end, trace.events.end(piece.longest) - 1000);
        }
      }
      EXPECT_EQ(events, static_cast<int64_t>(trace.size()));
    }
  }
}

TEST(TraceTimeline, AStretchHasWhatATwinFindsInIt) {
  const Trace trace = random_trace(5, 300);
  const TimelineRows rows(trace);
  for (int64_t from = 0; from < rows.length(); from += rows.length() / 7) {
    const int64_t to = from + rows.length() / 9;
    int64_t events = 0, expected = 0;
    for (const TimelineLane& lane : rows.lanes(trace, {.from = from, .to = to, .px = 50})) {
      for (const TimelinePiece& piece : lane.pieces) events += piece.events;
    }
    for (EventIndex i = 0; i < trace.size(); ++i) {
      if (trace.events.end(i) - 1000 > from && trace.events.start[i] - 1000 <= to) ++expected;
    }
    EXPECT_EQ(events, expected) << from;
  }
}

TEST(TraceTimeline, StreamsComeFirstAndJsonNamesThePieces) {
  const Trace trace = random_trace(1, 3);
  const TimelineRows rows(trace);
  const auto told = nlohmann::json::parse(timeline_json(trace, rows, {.from = 0, .to = rows.length(), .px = 1000}));
  EXPECT_EQ(told["schema"], "forerun.timeline/1");
  EXPECT_EQ(told["lanes"][0]["kind"], "GPU stream");
  EXPECT_EQ(told["lanes"][0]["start"].size(), 3U);
  EXPECT_EQ(told["names"][told["lanes"][0]["name_of"][0].dump()], "kernel");
}

TEST(TraceTimeline, TimesFurtherApartThanTheyCanBeToldAreHeldBack) {
  Trace trace;
  trace.lanes = {{TraceLane::Kind::host_thread, 1, 7, {}}};
  const NameId name = trace.names.intern("far");
  trace.events.add({.start = INT64_MIN, .duration = 1, .name = name, .lane = 0});
  trace.events.add({.start = INT64_MAX - 1, .duration = 1, .name = name, .lane = 0});
  const TimelineRows rows(trace);
  EXPECT_EQ(rows.length(), INT64_MAX);
  EXPECT_EQ(rows.lanes(trace, {.from = 0, .to = rows.length(), .px = 10}).size(), 1U);
  EXPECT_EQ(TimelineRows(Trace()).length(), 0);
}

}  // namespace
}  // namespace forerun
