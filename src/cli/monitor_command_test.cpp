// `forerun monitor` as a user meets it: exit codes, the record it writes, and what it says when it cannot.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

TEST(MonitorCommand, PassesOnTheExitCodeAndWritesARecord) {
  const auto folder = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_monitor_command");
  std::filesystem::create_directories(folder);
  const std::string record = (folder / "record.jsonl").string(), picture = (folder / "series.svg").string();
  const Outcome outcome =
      forerun_outcome("monitor --out " + record + " --svg " + picture + " -- sh -c 'sleep 0.2; exit 5'");
  EXPECT_EQ(outcome.code, 5) << outcome.out;
  EXPECT_NE(outcome.out.find("receive"), std::string::npos) << outcome.out;
  std::ifstream file(record);
  const auto written = nlohmann::json::parse(file);
  EXPECT_EQ(written["schema"], "resources/1");
  EXPECT_EQ(written["exit_code"], 5);
  EXPECT_EQ(written["series"]["send"].size(), written["series"]["receive"].size());
  EXPECT_GE(written["series"]["send"].size(), 2u);
  EXPECT_TRUE(written["metrics"]["send"].contains("burst_ms"));
  EXPECT_EQ(written.contains("gpu_missing"), written["gpu_source"] == "none");
  EXPECT_GT(std::filesystem::file_size(picture), 200u);
  std::filesystem::remove_all(folder);
}

// A folder of its own for one test.
class MonitorFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_monitor_" + test->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] nlohmann::json record() const {
    std::ifstream file(path("record.jsonl"));
    return nlohmann::json::parse(file, nullptr, false);
  }

  // Starts the monitor around a shell that starts another program and writes "up" when it runs; sends the monitor a signal
  // then. Says "left PID" where any of the two outlives the monitor. With job control, a shell does not have what it starts
  // in the background ignore SIGINT.
  Outcome signalled(const std::string& number, const std::string& command, const std::string& options = "") const {
    const std::string script = "cd " + folder_.string() + "; rm -f up; { " + FORERUN_PROGRAM + " monitor " + options +
                               " --out record.jsonl -- sh -c '" + command + "' > report 2>&1; echo $? > code; } & " +
                               "while ! [ -s up ]; do sleep 0.01; done; sleep 0.2; " + "kill -" + number +
                               " $(cat monitor); wait; cat report; " +
                               "for pid in $(cat up); do [ -d /proc/$pid ] && ! grep -q '^State:.Z' /proc/$pid/status "
                               "&& echo left $pid; done; " +
                               "exit $(cat code)";
    std::ofstream(path("script.sh")) << script << "\n";
    return outcome_of("timeout 60 bash -m " + path("script.sh") + " 2>&1");
  }
  std::filesystem::path folder_;
};

// $PPID of the shell is the monitor.
constexpr const char* kShellWithChild = "sleep 100 & echo $PPID > monitor; echo $$ $! > up.new; mv up.new up; wait";

TEST_F(MonitorFolder, ASignalEndsTheCommandWithAllItStartedAndIsReported) {
  for (const auto& [number, code] : {std::pair("TERM", 143), {"INT", 130}, {"HUP", 129}}) {
    // A shell starts programs in the background with SIGINT ignored; `sleep` is ended by SIGKILL then, after the grace.
    const bool interrupt = std::string(number) == "INT";
    const Outcome outcome = signalled(
        number, interrupt ? "trap \"exit 130\" INT; echo $PPID > monitor; echo $$ > up; sleep 100" : kShellWithChild);
    EXPECT_EQ(outcome.code, code) << number << outcome.out;
    EXPECT_EQ(outcome.out.find("left"), std::string::npos) << number << outcome.out;
    EXPECT_NE(outcome.out.find("receive"), std::string::npos) << "what was seen is reported: " << outcome.out;
    EXPECT_EQ(record()["exit_code"], code);
    std::filesystem::remove(path("record.jsonl"));
  }
}

TEST_F(MonitorFolder, TheCommandMayCleanUpAndItsCodeIsPassedOn) {
  const Outcome outcome = signalled(
      "TERM", "trap \"echo cleaned; exit 9\" TERM; echo $PPID > monitor; echo $$ > up; while :; do sleep 0.05; done");
  EXPECT_EQ(outcome.code, 9) << outcome.out;
  EXPECT_NE(outcome.out.find("cleaned"), std::string::npos) << outcome.out;
  EXPECT_EQ(record()["exit_code"], 9);
}

TEST_F(MonitorFolder, TheTimeLimitEndsTheCommand) {
  const Outcome outcome = forerun_outcome("monitor --seconds 0.3 --out " + path("record.jsonl") + " -- sleep 300");
  EXPECT_EQ(outcome.code, 143) << outcome.out;
  EXPECT_LT(record()["window_ms"], 10'000);
  EXPECT_EQ(forerun_outcome("monitor --seconds 20 -- sh -c 'exit 4'").code, 4) << "it ended by itself";
  EXPECT_EQ(forerun_outcome("monitor --seconds nan -- true").code, 1);
  EXPECT_EQ(forerun_outcome("monitor --seconds -1 -- true").code, 1);
}

TEST_F(MonitorFolder, OpensItsFilesBeforeTheCommandRuns) {
  for (const std::string option : {"--out", "--svg"}) {
    const Outcome outcome = forerun_outcome("monitor " + option + " /no/such/x -- touch " + path("ran"));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.out.find("/no/such/x: "), std::string::npos) << outcome.out;
    EXPECT_FALSE(std::filesystem::exists(path("ran"))) << option;
  }
  EXPECT_EQ(forerun_outcome("monitor --out " + path("new.jsonl") + " -- /no/such/program").code, 1);
  EXPECT_FALSE(std::filesystem::exists(path("new.jsonl"))) << "nothing was recorded";
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Outcome full = forerun_outcome("monitor --out /dev/full -- sh -c 'exit 5'");
  EXPECT_EQ(full.code, 5) << "the command's code is passed on all the same";
  EXPECT_NE(full.out.find("No space left on device"), std::string::npos) << full.out;
  EXPECT_EQ(forerun_outcome("monitor --out /dev/full -- true").code, 1);
}

TEST(MonitorCommand, SaysWhatIsWrong) {
  const Outcome nothing = forerun_outcome("monitor");
  EXPECT_EQ(nothing.code, 1);
  EXPECT_NE(nothing.out.find("--seconds"), std::string::npos) << nothing.out;
  EXPECT_EQ(forerun_outcome("monitor --seconds 1 --hz 0").code, 1);
  EXPECT_EQ(forerun_outcome("monitor --seconds 1 --gpu-source guess").code, 2);
  EXPECT_EQ(forerun_outcome("monitor -- /no/such/program").code, 1);
  const Outcome interface = forerun_outcome("monitor --seconds 1 --interface nosuch0");
  EXPECT_EQ(interface.code, 1);
  EXPECT_NE(interface.out.find("there are: "), std::string::npos) << interface.out;
}

}  // namespace
}  // namespace forerun::cli
