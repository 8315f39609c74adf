#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/partial_files.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / (std::string("output_file_") + std::to_string(getpid())) / test->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name = "out.svg") const { return (folder_ / name).string(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // What a child process exits with, -SIGNAL where one ended it.
  static int in_child(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  fs::path folder_;
};

TEST_F(OutputFiles, IsThereOnceItIsWhole) {
  auto file = OutputFile::create(path());
  ASSERT_TRUE(file.ok()) << file.error().message();
  const std::string large(1'000'000, 'x');
  for (const std::string& part : {std::string("first"), large, std::string("last")}) {
    ASSERT_TRUE(file->write(part).ok());
    EXPECT_FALSE(fs::exists(path()));
  }
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(text_of(path()), "first" + large + "last");
  EXPECT_EQ(names(), std::vector<std::string>{"out.svg"});
}

TEST_F(OutputFiles, LeavesTheEarlierFileWhereItIsDropped) {
  ASSERT_TRUE(write_whole_file(path(), "old").ok());
  {
    auto file = OutputFile::create(path());
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write(std::string(1'000'000, 'x')).ok());
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(text_of(path()), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"out.svg"});
}

TEST_F(OutputFiles, TwoWritersDoNotShare) {
  auto one = OutputFile::create(path());
  auto two = OutputFile::create(path());
  ASSERT_TRUE(one.ok() && two.ok());
  ASSERT_TRUE(one->write("one").ok());
  ASSERT_TRUE(two->write("two").ok());
  ASSERT_TRUE(one->finish().ok());
  EXPECT_EQ(text_of(path()), "one");
  ASSERT_TRUE(two->finish().ok());
  EXPECT_EQ(text_of(path()), "two");
  EXPECT_EQ(names(), std::vector<std::string>{"out.svg"});
}

TEST_F(OutputFiles, OverwritesOnlyWhereAsked) {
  auto late = OutputFile::create(path(), {.overwrite = false});
  ASSERT_TRUE(late.ok());
  ASSERT_TRUE(write_whole_file(path(), "old").ok());
  const Status status = late->finish();
  ASSERT_FALSE(status.ok()) << "it came into being since";
  EXPECT_EQ(status.error().what, "exists already");
  EXPECT_FALSE(OutputFile::create(path(), {.overwrite = false}).ok());
  EXPECT_EQ(text_of(path()), "old");
}

// A limit on the size of files stands for a full disk.
TEST_F(OutputFiles, AFullDiskLeavesTheEarlierFile) {
  ASSERT_TRUE(write_whole_file(path(), "old").ok());
  const int code = in_child([&] {
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
    const Status status = write_whole_file(path(), std::string(300'000, 'x'));
    if (status.ok()) return 1;
    const std::string message = status.error().message();
    const bool named = message.find(std::strerror(EFBIG)) != std::string::npos;
    return named && message.find("free space") != std::string::npos ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(text_of(path()), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"out.svg"});
}

TEST_F(OutputFiles, SaysWhyItCannotBeWritten) {
  const auto missing = OutputFile::create("/no/such/folder/a.svg");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(
      missing.error().message(),
      "/no/such/folder/a.svg: cannot be created: No such file or directory; name a file in a folder that is there");
  EXPECT_EQ(OutputFile::create(folder_.string()).error().what, "is a folder");
  EXPECT_FALSE(OutputFile::create("").ok());
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Status full = write_whole_file("/dev/full", "x");
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message().find("No space left on device; make free space"), std::string::npos);
}

TEST_F(OutputFiles, FollowsLinks) {
  fs::create_directory(folder_ / "kept");
  ASSERT_TRUE(write_whole_file(path("kept/real.svg"), "old").ok());
  fs::create_symlink("kept/real.svg", path("link.svg"));
  fs::create_symlink("kept/missing.svg", path("dangling.svg"));
  ASSERT_TRUE(write_whole_file(path("link.svg"), "new").ok());
  ASSERT_TRUE(write_whole_file(path("dangling.svg"), "made").ok());
  EXPECT_TRUE(fs::is_symlink(path("link.svg")));
  EXPECT_TRUE(fs::is_symlink(path("dangling.svg")));
  EXPECT_EQ(text_of(path("kept/real.svg")), "new");
  EXPECT_EQ(text_of(path("kept/missing.svg")), "made");
  fs::create_symlink("loop", path("loop"));
  EXPECT_FALSE(write_whole_file(path("loop"), "x").ok());
}

TEST_F(OutputFiles, WritesPipesAndDescriptorsAsTheyCome) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = text_of(path("pipe")); });
  EXPECT_TRUE(write_whole_file(path("pipe"), "through").ok());
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));

  const int file = open(path("log").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(write(file, "before ", 7), 7);
  EXPECT_TRUE(write_whole_file("/dev/fd/" + std::to_string(file), "between").ok());
  ASSERT_EQ(write(file, " after", 6), 6);
  close(file);
  EXPECT_EQ(text_of(path("log")), "before between after");
}

TEST_F(OutputFiles, HasThePermissionsOfTheUmaskOrOfTheEarlierFile) {
  const mode_t before = umask(027);
  ASSERT_TRUE(write_whole_file(path("new"), "x").ok());
  ASSERT_TRUE(write_whole_file(path("old"), "x").ok());
  ASSERT_EQ(chmod(path("old").c_str(), 0664), 0);
  ASSERT_TRUE(write_whole_file(path("old"), "y").ok());
  umask(before);
  EXPECT_EQ(fs::status(path("new")).permissions(), static_cast<fs::perms>(0640));
  EXPECT_EQ(fs::status(path("old")).permissions(), static_cast<fs::perms>(0664));
}

TEST_F(OutputFiles, TakesLongNames) {
  const std::string name(255, 'n');
  ASSERT_TRUE(write_whole_file(path(name), "x").ok());
  EXPECT_EQ(names(), std::vector<std::string>{name});
}

TEST_F(OutputFiles, ASignalRemovesWhatIsUnfinished) {
  ASSERT_TRUE(write_whole_file(path(), "old").ok());
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const int code = in_child([&] {
      std::signal(number, SIG_DFL);
      remove_partial_files_on_signals();
      auto first = OutputFile::create(path());
      auto second = OutputFile::create(path("other"));
      if (!first.ok() || !second.ok() || !first->write(std::string(1'000'000, 'x')).ok()) return 1;
      raise(number);
      return 2;
    });
    EXPECT_EQ(code, -number);
    EXPECT_EQ(names(), std::vector<std::string>{"out.svg"});
    EXPECT_EQ(text_of(path()), "old");
  }
  EXPECT_EQ(in_child([] {
              std::signal(SIGHUP, SIG_IGN);
              remove_partial_files_on_signals();
              raise(SIGHUP);
              return 7;
            }),
            7)
      << "what is ignored stays ignored";
}

}  // namespace
}  // namespace forerun
