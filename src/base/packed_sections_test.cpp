#include "base/packed_sections.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

const std::vector<std::pair<std::string, std::string>> kParts = {
    {"empty", ""}, {"text", std::string(10'000, 'a') + "b"}, {"bytes", std::string("\0\xFF\n", 3)}};

TEST(PackedSections, GivesEachPartByItsName) {
  const Result<std::string> bytes = packed_sections(kParts);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message();
  EXPECT_LT(bytes->size(), 300U);
  const Result<PackedSections> sections = PackedSections::parse(*bytes);
  ASSERT_TRUE(sections.ok()) << sections.error().message();
  EXPECT_EQ(sections->names(), (std::vector<std::string>{"empty", "text", "bytes"}));
  for (const auto& [name, part] : kParts) EXPECT_EQ(*sections->unpack(name), part) << name;
  EXPECT_FALSE(sections->unpack("another").ok());
}

TEST(PackedSections, WhateverWasChangedIsToldWhenTheFileIsRead) {
  const std::string bytes = *packed_sections(kParts);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(PackedSections::parse(bytes.substr(0, i)).ok()) << i;
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    const Result<PackedSections> sections = PackedSections::parse(flipped);
    if (!sections.ok()) continue;
    // A name that is another, or an unpacked size that the part does not have.
    bool differs = sections->names() != PackedSections::parse(bytes)->names();
    for (const auto& [name, part] : kParts) differs = differs || !sections->unpack(name).ok();
    EXPECT_TRUE(differs) << i;
  }
  EXPECT_FALSE(PackedSections::parse(bytes + "x").ok());
  EXPECT_FALSE(PackedSections::parse(*packed_sections({{"a", "1"}, {"a", "2"}})).ok()) << "a name twice";
  EXPECT_FALSE(PackedSections::open("/no/such/file").ok());
}

}  // namespace
}  // namespace forerun
