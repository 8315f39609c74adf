#include "base/provenance.h"

#include <gtest/gtest.h>

#include <fstream>

namespace forerun {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

class Fingerprints : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::path(testing::TempDir()) / "fingerprints";
};

TEST_F(Fingerprints, AreTheSameWhereverTheFilesLie) {
  for (const char* place : {"here", "there"}) {
    write(folder_ / place / "weights/card.json", "{}");
    write(folder_ / place / "weights/more/a.bin", std::string(200'000, 'x'));
  }
  const auto here = fingerprint({folder_ / "here/weights"});
  ASSERT_TRUE(here.ok());
  EXPECT_EQ(here->size(), 16U);
  EXPECT_EQ(*here, *fingerprint({folder_ / "there/weights"}));
}

TEST_F(Fingerprints, TellAByteANameAndABoundary) {
  write(folder_ / "w/a", "one");
  write(folder_ / "w/b", "two");
  const std::string before = *fingerprint({folder_ / "w"});
  write(folder_ / "w/b", "twO");
  EXPECT_NE(*fingerprint({folder_ / "w"}), before);
  write(folder_ / "w/a", "onet");
  write(folder_ / "w/b", "wo");
  EXPECT_NE(*fingerprint({folder_ / "w"}), before);
  write(folder_ / "w/a", "one");
  write(folder_ / "w/b", "two");
  EXPECT_EQ(*fingerprint({folder_ / "w"}), before);
  fs::rename(folder_ / "w/b", folder_ / "w/c");
  EXPECT_NE(*fingerprint({folder_ / "w"}), before);
  EXPECT_NE(*fingerprint({folder_ / "w/a", folder_ / "w/c"}), *fingerprint({folder_ / "w/c", folder_ / "w/a"}));
}

// FNV-1a of "a\0" "1" "1;", reckoned by hand in Python.
TEST_F(Fingerprints, AreWhatTheyWereEverywhere) {
  write(folder_ / "a", "1");
  EXPECT_EQ(*fingerprint({folder_ / "a"}), "ebc19dfe080068b3");
}

TEST_F(Fingerprints, AnswerAMissingFileWithItsName) {
  const auto none = fingerprint({folder_ / "none"});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message().find("none"), std::string::npos);
}

TEST(Provenance, SaysDayAndMachine) {
  EXPECT_EQ(today_utc().size(), 10U);
  EXPECT_NE(this_machine().find(" core"), std::string::npos);
}

}  // namespace
}  // namespace forerun
