// Replay of real traces: how near the simulated iteration comes to the measured one.
#include "api/replay.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "base/needs_dataset.h"
#include "ingest/kineto/kineto_reader.h"
#include "ingest/trace/device_clock.h"
#include "report/replay.h"

namespace forerun {
namespace {

const std::string kOwnTraces = FORERUN_DATA_DIR "/h200/whatif_traces";

std::vector<ReplayRow> replayed(const std::vector<std::string>& paths, const ReplayOptions& options) {
  const auto files = trace_files(paths, "replay");
  EXPECT_TRUE(files.ok());
  std::vector<ReplayRow> rows;
  ReplayHandlers handlers;
  handlers.row = [&](const ReplayRow& row) {
    std::printf("%s\n", to_text(row).c_str());
    rows.push_back(row);
  };
  EXPECT_TRUE(replay_traces(*files, options, handlers).ok());
  return rows;
}

// With the trace's usual lags: what is left to go wrong is how much waits for what.
void expect_understood(const std::vector<std::string>& folders, size_t at_least, double mean, double largest) {
  double sum = 0;
  const std::vector<ReplayRow> rows = replayed(folders, {.separately = true});
  ASSERT_GE(rows.size(), at_least);
  for (const ReplayRow& row : rows) {
    EXPECT_FALSE(row.own_lags);
    EXPECT_LE(row.error(), largest) << row.file;
    sum += row.error();
  }
  EXPECT_LE(sum / static_cast<double>(rows.size()), mean);
  EXPECT_GT(sum, 0);  // an error of 0 everywhere would be one by construction
}

TEST(ReplayTest, OwnTracesAreUnderstood) { expect_understood({kOwnTraces}, 6, 0.02, 0.08); }

TEST(ReplayTest, RealTracesAreUnderstood) {
  NEEDS_DATASET(traces, "traces");
  expect_understood({traces + "/hta", traces + "/kineto", traces + "/param/dlrm_8ranks"}, 20, 0.01, 0.06);
}

// With each event's own lags a replay can only fail by contradicting dependencies.
TEST(ReplayTest, OwnLagsGiveTheMeasuredTimes) {
  const std::vector<ReplayRow> rows = replayed({kOwnTraces}, {.separately = true, .own_lags = true});
  ASSERT_EQ(rows.size(), 6U);
  for (const ReplayRow& row : rows) EXPECT_LE(row.error(), 1e-6) << row.file;
  EXPECT_NE(to_text(rows).find("by construction"), std::string::npos);
}

Trace with_device_shifted(Trace trace, int64_t nanoseconds) {
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const EventKind kind = trace.events.kind[i];
    if (is_device_work(kind) || kind == EventKind::sync) trace.events.start[i] += nanoseconds;
  }
  sort_events(trace.events);
  align_device_clocks(trace);  // as readers do
  return trace;
}

// A device's clock that is off by more than a queue is long: every launch comes behind its kernel, or no sync waits.
TEST(ReplayTest, ADeviceClockThatIsOffChangesNothing) {
  const auto trace = read_kineto(kOwnTraces + "/vgg19.base.trace.json.zst");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  const auto right = replay(std::span(&*trace, 1), {});
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right->device_clock_us, 0);
  for (const int64_t milliseconds : {-300, -30, -3, 3, 30, 300}) {
    const Trace shifted = with_device_shifted(*trace, milliseconds * 1'000'000);
    const auto row = replay(std::span(&shifted, 1), {});
    ASSERT_TRUE(row.ok());
    EXPECT_NEAR(row->device_clock_us, -1e3 * static_cast<double>(milliseconds), 300) << milliseconds;
    EXPECT_NEAR(row->measured_ms, right->measured_ms, 0.3) << milliseconds;
    EXPECT_NEAR(row->simulated_ms, right->simulated_ms, 0.3) << milliseconds;
    EXPECT_NEAR(static_cast<double>(row->counts.syncs_found), static_cast<double>(right->counts.syncs_found), 1);
  }
}

TEST(ReplayTest, EightRanksMeetInTheirCollectives) {
  NEEDS_DATASET(folder, "traces/param/dlrm_8ranks");
  const std::vector<ReplayRow> rows = replayed({folder}, {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].files.size(), 8u);
  EXPECT_EQ(rows[0].counts.rendezvous, 8);
  EXPECT_LE(rows[0].worst_collective_us, 100);
  EXPECT_LE(rows[0].error(), 0.03);
  for (size_t r = 0; r < rows[0].iterations; ++r) {
    EXPECT_NEAR(rows[0].simulated_steps_ms[r], rows[0].measured_steps_ms[r], 0.03 * rows[0].measured_steps_ms[r]);
  }
}

TEST(ReplayTest, MissingFilesAreNamed) {
  const auto files = trace_files({"/nowhere/trace.json"}, "replay");
  ASSERT_FALSE(files.ok());
  EXPECT_NE(files.error().message().find("/nowhere/trace.json"), std::string::npos);
}

}  // namespace
}  // namespace forerun
