#include "memory/allocator_settings.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(AllocatorSettings, ReadsWhatTheEnvironmentVariableSays) {
  const auto settings = parse_allocator_settings(
      "expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8,roundup_power2_divisions:[64:8,"
      "256:4,>:2]");
  ASSERT_TRUE(settings.ok()) << settings.error().message();
  EXPECT_TRUE(settings->expandable_segments);
  EXPECT_EQ(settings->max_split_size, 128 * kMebibyte);
  EXPECT_EQ(settings->garbage_collection_threshold, 0.8);
  EXPECT_EQ(settings->roundup_power2_divisions[0], 8);
  EXPECT_EQ(settings->roundup_power2_divisions[6], 8);
  EXPECT_EQ(settings->roundup_power2_divisions[7], 4);
  EXPECT_EQ(settings->roundup_power2_divisions[9], 2);
  EXPECT_EQ(settings->roundup_power2_divisions[15], 2);
}

TEST(AllocatorSettings, NamesWhatIsWrong) {
  for (const char* text :
       {"max_split_size_mb:20", "max_split_size_mb:", "expandable_segments:yes", "garbage_collection_threshold:1.5",
        "roundup_power2_divisions:3", "roundup_power2_divisions:[1:2", "max_split_size:64", "nonsense",
        "roundup_power2_divisions:[100:2]", "max_split_size_mb:99999999999999999999"}) {
    EXPECT_FALSE(parse_allocator_settings(text).ok()) << text;
  }
  EXPECT_NE(parse_allocator_settings("max_split_size:64").error().message().find("max_split_size_mb"),
            std::string::npos);
  EXPECT_TRUE(parse_allocator_settings("").ok());
}

TEST(AllocatorSettings, RoundsSizes) {
  const AllocatorSettings plain;
  EXPECT_EQ(block_size(1, plain), 512);
  EXPECT_EQ(block_size(512, plain), 512);
  EXPECT_EQ(block_size(513, plain), 1024);
  AllocatorSettings quarters;
  quarters.roundup_power2_divisions.fill(4);
  EXPECT_EQ(block_size(1200, quarters), 1536);                // too small for divisions
  EXPECT_EQ(block_size(1100 * 1024, quarters), 1280 * 1024);  // 1 MiB, 1.25, 1.5, 1.75, 2
  EXPECT_EQ(block_size(1280 * 1024, quarters), 1280 * 1024);
  EXPECT_EQ(block_size(1800 * 1024, quarters), 2048 * 1024);
  EXPECT_EQ(block_size(4 * kMebibyte, quarters), 4 * kMebibyte);
}

}  // namespace
}  // namespace forerun
