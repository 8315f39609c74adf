#include "base/line_appender.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace forerun {
namespace {

namespace fs = std::filesystem;

class LineAppenderFile : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  std::string path_ = (fs::path(::testing::TempDir()) / ("line_appender_" + std::to_string(getpid()))).string();
};

TEST_F(LineAppenderFile, AddsWholeLines) {
  for (const char* line : {"one", "two"}) {
    auto file = LineAppender::open(path_);
    ASSERT_TRUE(file.ok()) << file.error().message();
    ASSERT_TRUE(file->append(line).ok());
  }
  EXPECT_EQ(text(), "one\ntwo\n");
  std::ofstream(path_) << "one\n{\"torn\"";
  ASSERT_TRUE(LineAppender::open(path_)->append("two").ok());
  EXPECT_EQ(text(), "one\n{\"torn\"\ntwo\n");
}

TEST_F(LineAppenderFile, LeavesNoEmptyFileBehind) {
  { EXPECT_TRUE(LineAppender::open(path_).ok()); }
  EXPECT_FALSE(fs::exists(path_));
  std::ofstream(path_) << "";
  { EXPECT_TRUE(LineAppender::open(path_).ok()); }
  EXPECT_TRUE(fs::exists(path_)) << "it was there before";
  EXPECT_FALSE(LineAppender::open("/no/such/folder/x").ok());
}

// A limit on the size of files stands for a full disk.
TEST_F(LineAppenderFile, TakesALineBackThatDoesNotFit) {
  std::ofstream(path_) << "old\n";
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{10'000, 10'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
    _exit(LineAppender::open(path_)->append(std::string(20'000, 'x')).ok() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(text(), "old\n");
}

}  // namespace
}  // namespace forerun
