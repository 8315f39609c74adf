// The simulated allocator against recorded ones: exact where the trace tells addresses, near where it does not.
#include "api/memory_replay.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/data_dir.h"

namespace forerun {
namespace {

std::vector<MemoryReplayRow> replayed(const std::string& file) {
  std::vector<MemoryReplayRow> rows;
  const Status status =
      replay_memory({file}, {},
                    {.row = [&](const MemoryReplayRow& row) { rows.push_back(row); },
                     .problem = [](const DataProblem& problem) { ADD_FAILURE() << problem.error().message(); }});
  EXPECT_TRUE(status.ok()) << status.error().message();
  return rows;
}

TEST(MemoryReplay, IsExactWhereAddressesAreKnown) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const std::string file = (*folder / "h200" / "runs-1.jsonl.zst").string();
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
  const std::vector<MemoryReplayRow> rows = replayed(file);
  EXPECT_GT(rows.size(), 20U);
  for (const MemoryReplayRow& row : rows) {
    EXPECT_TRUE(row.requested.exact()) << row.id;
    EXPECT_TRUE(row.allocated.exact()) << row.id;
    EXPECT_TRUE(row.reserved.exact()) << row.id;
    EXPECT_EQ(row.replay.misplaced, 0) << row.id;
    EXPECT_EQ(row.replay.odd_segments, 0) << row.id;
  }
}

TEST(MemoryReplay, ComesNearWhereTheyAreNot) {
  const std::string file = FORERUN_DATA_DIR "/h200/first-starter.jsonl.zst";
  const std::vector<MemoryReplayRow> rows = replayed(file);
  ASSERT_EQ(rows.size(), 74U);
  size_t allocated = 0;
  size_t reserved = 0;
  double allocated_error = 0;
  double reserved_error = 0;
  for (const MemoryReplayRow& row : rows) {
    EXPECT_TRUE(row.requested.exact()) << row.id;
    allocated += row.allocated.exact() ? 1 : 0;
    reserved += row.reserved.exact() ? 1 : 0;
    allocated_error += row.allocated.error() / 74;
    reserved_error += row.reserved.error() / 74;
  }
  EXPECT_GE(allocated, 63U);  // 85 %
  EXPECT_GE(reserved, 63U);
  EXPECT_LE(allocated_error, 0.0001);
  EXPECT_LE(reserved_error, 0.001);
}

}  // namespace
}  // namespace forerun
