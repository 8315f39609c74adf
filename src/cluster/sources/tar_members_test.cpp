#include "cluster/sources/tar_members.h"

#include <gtest/gtest.h>

namespace forerun::cluster {
namespace {

// One file as tar stores it: a block with name, size in octal and "ustar", and the text in whole blocks.
std::string tar_entry(const std::string& name, const std::string& text) {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  std::string octal = "00000000000";
  for (size_t size = text.size(), i = octal.size(); size > 0; size /= 8) octal[--i] = static_cast<char>('0' + size % 8);
  block.replace(124, octal.size(), octal);
  block[156] = '0';
  block.replace(257, 5, "ustar");
  std::string data = text;
  data.resize((text.size() + 511) / 512 * 512, '\0');
  return block + data;
}

const std::string kTarEnd(1024, '\0');

TEST(TarMembers, ReadsFilesUpToTheEndMark) {
  const auto members =
      parse_tar(tar_entry("a.csv", "x,y\n") + tar_entry("b.csv", std::string(700, 'z')) + kTarEnd, "t");
  ASSERT_TRUE(members.ok()) << members.error().message();
  ASSERT_EQ(members->size(), 2U);
  EXPECT_EQ(members->front().name, "a.csv");
  EXPECT_EQ(members->front().text, "x,y\n");
  EXPECT_EQ(members->back().text.size(), 700U);
}

// Wherever an archive is cut, it is not taken for a whole one.
TEST(TarMembers, ACutArchiveIsAnError) {
  const std::string whole = tar_entry("a.csv", "x,y\n") + tar_entry("b.csv", std::string(700, 'z'));
  for (size_t size = 0; size <= whole.size(); size += 64) {
    SCOPED_TRACE(size);
    const auto members = parse_tar(whole.substr(0, size), "cut.tar");
    ASSERT_FALSE(members.ok());
    EXPECT_EQ(members.error().where, "cut.tar");
  }
  EXPECT_NE(parse_tar(whole, "cut.tar").error().what.find("behind its file 'b.csv'"), std::string::npos);
  EXPECT_FALSE(parse_tar(kTarEnd, "empty.tar").ok());
}

}  // namespace
}  // namespace forerun::cluster
