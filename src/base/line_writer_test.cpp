#include "base/line_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/line_reader.h"

#if __has_include(<zlib.h>) && __has_include(<zstd.h>)

namespace forerun {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class LineWriterFile : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / (std::string("line_writer_") + std::to_string(getpid())) / test->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return (folder_ / (std::string("lines.jsonl") + GetParam())).string(); }

  // Writes the lines; small levels, because what is tested is not how small it gets.
  static void write(const std::string& path, const std::vector<std::string>& lines, bool overwrite = false) {
    auto writer = LineWriter::create(path, {.overwrite = overwrite, .zstd_level = 3});
    ASSERT_TRUE(writer.ok()) << writer.error().message();
    for (const std::string& line : lines) ASSERT_TRUE(writer->write(line).ok());
    ASSERT_TRUE(writer->finish().ok());
  }
  static std::vector<std::string> read(const std::string& path) {
    auto reader = LineReader::open(path);
    EXPECT_TRUE(reader.ok());
    std::vector<std::string> lines;
    while (true) {
      const auto line = reader->next();
      EXPECT_TRUE(line.ok()) << line.error().message();
      if (!line.ok() || !line->has_value()) return lines;
      lines.emplace_back(**line);
      EXPECT_TRUE(reader->line_ended());
    }
  }
  fs::path folder_;
};

TEST_P(LineWriterFile, WritesWhatIsReadBack) {
  std::vector<std::string> lines = {"", "a", std::string(3000000, 'x'), "last"};
  for (int i = 0; i < 2000; ++i)
    lines.push_back(std::to_string(i * 7919) + std::string(static_cast<size_t>(i) % 90, 'y'));
  write(path(), lines);
  EXPECT_EQ(read(path()), lines);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "nothing else is left behind";
  const std::string first = contents(path());
  write(path(), lines, true);
  EXPECT_EQ(contents(path()), first) << "the same lines give the same bytes";
  write(path(), {}, true);
  EXPECT_TRUE(read(path()).empty());
}

TEST_P(LineWriterFile, KeepsTheOldFileUntilTheNewOneIsWhole) {
  write(path(), {"old"});
  const auto refused = LineWriter::create(path(), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().what, "exists already");
  {
    auto writer = LineWriter::create(path(), {.overwrite = true});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write("new").ok());
    EXPECT_EQ(read(path()), std::vector<std::string>{"old"});
  }
  EXPECT_EQ(read(path()), std::vector<std::string>{"old"}) << "dropped before finish()";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "nothing else is left behind";
}

INSTANTIATE_TEST_SUITE_P(Forms, LineWriterFile, ::testing::Values("", ".gz", ".zst"));

TEST(LineWriter, SaysWhatCannotBeWritten) {
  const auto missing = LineWriter::create("/no/such/folder/a.jsonl", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find("/no/such/folder/a.jsonl"), std::string::npos);
  EXPECT_FALSE(LineWriter::create(::testing::TempDir(), {.overwrite = true}).ok());
}

}  // namespace
}  // namespace forerun
#endif
