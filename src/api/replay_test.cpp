// Replay of real traces: how near the simulated iteration comes to the measured one.
#include "api/replay.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "base/needs_dataset.h"
#include "report/replay.h"

namespace forerun {
namespace {

const std::string kOwnTraces = FORERUN_DATA_DIR "/h200/whatif_traces";

std::vector<ReplayRow> replayed(const std::vector<std::string>& paths, bool separately, bool usual = false) {
  const auto files = trace_files(paths, "replay");
  EXPECT_TRUE(files.ok());
  std::vector<ReplayRow> rows;
  ReplayHandlers handlers;
  handlers.row = [&](const ReplayRow& row) {
    std::printf("%s\n", to_text(row).c_str());
    rows.push_back(row);
  };
  EXPECT_TRUE(replay_traces(*files, {separately, usual}, handlers).ok());
  return rows;
}

void expect_measured_times(const std::vector<std::string>& folders, int at_least) {
  double sum = 0;
  int count = 0;
  for (const ReplayRow& row : replayed(folders, true)) {
    if (row.source != IterationSource::profiler_steps && row.source != IterationSource::optimizer_steps) continue;
    EXPECT_LE(row.error(), 0.06) << row.file;
    sum += row.error();
    ++count;
  }
  ASSERT_GE(count, at_least);
  EXPECT_LE(sum / count, 0.02);
}

TEST(ReplayTest, OwnTracesTakeAsLongAsTheyDid) { expect_measured_times({kOwnTraces}, 6); }

TEST(ReplayTest, RealTracesTakeAsLongAsTheyDid) {
  NEEDS_DATASET(traces, "traces");
  expect_measured_times({traces + "/hta", traces + "/kineto", traces + "/param"}, 14);
}

// With the trace's usual lags in place of each event's own: what is left to go wrong is how much waits for what.
TEST(ReplayTest, OwnTracesAreUnderstoodWithoutTheirOwnLags) {
  double sum = 0;
  const std::vector<ReplayRow> rows = replayed({kOwnTraces}, true, true);
  ASSERT_EQ(rows.size(), 6U);
  for (const ReplayRow& row : rows) sum += row.error();
  EXPECT_LE(sum / static_cast<double>(rows.size()), 0.03);
}

TEST(ReplayTest, RealTracesAreUnderstoodWithoutTheirOwnLags) {
  NEEDS_DATASET(traces, "traces");
  double sum = 0;
  const std::vector<ReplayRow> rows = replayed({traces + "/hta", traces + "/kineto"}, true, true);
  for (const ReplayRow& row : rows) sum += row.error();
  EXPECT_LE(sum / static_cast<double>(rows.size()), 0.03);
}

TEST(ReplayTest, EightRanksMeetInTheirCollectives) {
  NEEDS_DATASET(folder, "traces/param/dlrm_8ranks");
  const std::vector<ReplayRow> rows = replayed({folder}, false);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].files.size(), 8u);
  EXPECT_EQ(rows[0].counts.rendezvous, 8);
  EXPECT_LE(rows[0].worst_collective_us, 50);
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
