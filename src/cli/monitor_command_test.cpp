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
