// `--machine` as a user meets it, and what `forerun data` makes of such files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

const std::string kMachine = std::string(FORERUN_SOURCE_DIR) + "/tests/corpus/machine_file/h200.json";
const std::string kHostOnly = std::string(FORERUN_SOURCE_DIR) + "/tests/corpus/machine_file/host_only.json";
const std::string kOtherVersion = std::string(FORERUN_SOURCE_DIR) + "/tests/corpus/machine_file/other_version.json";

nlohmann::json predicted(const std::string& words) {
  const Outcome outcome = forerun_outcome("predict resnet18 --json " + words);
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

std::string assumptions_of(const nlohmann::json& answer) { return answer["assumptions"].dump(); }

// A file of the test that is gone when it ends.
class WrittenFile {
 public:
  explicit WrittenFile(const std::string& text, const std::string& name = "machine.json")
      : folder_(std::filesystem::temp_directory_path() / ("machine_option_test-" + std::to_string(getpid()))),
        path_(folder_ / name) {
    std::filesystem::create_directories(path_.parent_path());
    std::ofstream(path_) << text;
  }
  ~WrittenFile() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

TEST(MachineOption, ChangesTimesAndSaysSo) {
  const auto plain = predicted("--machine none --gpu h200");
  const auto calibrated = predicted("--machine " + kMachine);
  EXPECT_EQ(calibrated["gpu"], "NVIDIA H200");
  EXPECT_EQ(plain["gpu_ms"], calibrated["gpu_ms"]) << "the trees rest on more";
  EXPECT_NE(plain["host_ms"], calibrated["host_ms"]);
  EXPECT_EQ(plain["peak_reserved"], calibrated["peak_reserved"]);
  EXPECT_NE(assumptions_of(calibrated).find("calibrated on 2026-11-17"), std::string::npos);
  EXPECT_EQ(assumptions_of(plain).find("calibrated on"), std::string::npos);
}

TEST(MachineOption, OpsThatWereReadChangeTimesAlikeInEveryVerb) {
  auto machine = read_json(kMachine);
  machine["gpu"]["device"]["name"] = machine["card"]["gpu"] = "NVIDIA A100-SXM4-80GB";
  const WrittenFile file(machine.dump());
  const auto plain = predicted("--gpu a100_80gb --machine none");
  const auto calibrated = predicted("--machine " + file.path());
  EXPECT_EQ(calibrated["gpu"], "NVIDIA A100-SXM4-80GB");
  EXPECT_NE(plain["gpu_ms"], calibrated["gpu_ms"]);
  EXPECT_NE(assumptions_of(calibrated).find("14 ops of this GPU"), std::string::npos) << assumptions_of(calibrated);
  const Outcome outcome =
      forerun_outcome("whatif resnet18 --apply amp --json --gpu a100_80gb --machine " + file.path());
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  const auto whatif = nlohmann::json::parse(outcome.out, nullptr, false);
  const double iteration = calibrated["iter_ms"].get<double>();
  EXPECT_NEAR(whatif["baseline_ms"].get<double>(), iteration, 0.005 * iteration);
}

TEST(MachineOption, OfAnotherGpuTheHostAloneCounts) {
  const auto plain = predicted("--machine none --gpu t4");
  const auto calibrated = predicted("--gpu t4 --machine " + kMachine);
  EXPECT_EQ(plain["gpu_ms"], calibrated["gpu_ms"]);
  EXPECT_NE(plain["host_ms"], calibrated["host_ms"]);
  EXPECT_NE(assumptions_of(calibrated).find("alone, since its GPU is the NVIDIA H200"), std::string::npos);
}

TEST(MachineOption, AHostAloneLeavesTheGpuAsItIs) {
  const auto plain = predicted("--machine none");
  const auto calibrated = predicted("--machine " + kHostOnly);
  EXPECT_EQ(plain["gpu"], calibrated["gpu"]);
  EXPECT_EQ(plain["gpu_ms"], calibrated["gpu_ms"]);
  EXPECT_NE(plain["host_ms"], calibrated["host_ms"]);
}

// A reading of an op on tensors of one shape.
nlohmann::json reading_of(const std::string& op, const std::string& shape, int inputs, double us) {
  const std::string tensor = R"(["float32", )" + shape + ", null]";
  nlohmann::json reading = nlohmann::json::parse(
      R"({"precision": "fp32", "attributes": {}, "spread": 0, "kernels": 1, "inputs": [], "outputs": []})");
  reading["op"] = op;
  reading["us"] = reading["span_us"] = us;
  for (int i = 0; i < inputs; ++i) reading["inputs"].push_back(nlohmann::json::parse(tensor));
  reading["outputs"].push_back(nlohmann::json::parse(tensor));
  return reading;
}

TEST(MachineOption, AGpuThatNobodyKnowsWorksUnderItsName) {
  auto machine = read_json(kMachine);
  machine["gpu"]["device"]["name"] = machine["card"]["gpu"] = "NVIDIA Zeta 9000";
  machine["gpu"]["ops"] = nlohmann::json::array();
  machine["gpu"]["ops"].push_back(reading_of("aten.mm.default", "[8192, 8192]", 2, 30000));
  {
    const WrittenFile incomplete(machine.dump());
    const Outcome refused = forerun_outcome("predict resnet18 --machine " + incomplete.path());
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.out.find("do not tell enough"), std::string::npos) << refused.out;
  }
  machine["gpu"]["ops"].push_back(reading_of("aten.relu.default", "[268435456]", 1, 4000));
  const WrittenFile whole(machine.dump());
  const auto answer = predicted("--machine " + whole.path());
  EXPECT_EQ(answer["gpu"], "NVIDIA Zeta 9000");
  EXPECT_GT(answer["gpu_ms"].get<double>(), 0);
}

TEST(MachineOption, EveryVerbTakesIt) {
  const std::string words = " --json --machine " + kMachine;
  for (const std::string& call : {"fit resnet18 --brief" + words, "compare resnet18 --gpus h200,t4" + words,
                                  "sweep resnet18 --over batch=8,16" + words, "whatif resnet18 --apply amp" + words,
                                  "scale resnet18 --gpus 2" + words}) {
    const Outcome outcome = forerun_outcome(call);
    EXPECT_EQ(outcome.code, 0) << call << "\n" << outcome.out;
  }
}

TEST(MachineOption, BrokenFilesAreRefused) {
  const Outcome missing = forerun_outcome("predict resnet18 --machine no/such.json");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.out.find("no/such.json"), std::string::npos);
  const Outcome version = forerun_outcome("predict resnet18 --machine " + kOtherVersion);
  EXPECT_EQ(version.code, 1);
  EXPECT_NE(version.out.find("known is machine/1"), std::string::npos) << version.out;
}

TEST(MachineOption, DataChecksAndMergesSuchFiles) {
  const Outcome good = forerun_outcome("data check " + kMachine + " " + kHostOnly);
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_NE(good.out.find("14 op samples are good"), std::string::npos) << good.out;
  auto machine = read_json(kMachine);
  machine["card"].erase("date");
  for (auto& op : machine["gpu"]["ops"]) op["again_us"] = 2 * op["span_us"].get<double>();
  machine["gpu"]["ops"].push_back(reading_of("aten.mm.default", "[8192, 8192]", 2, 30));
  const WrittenFile file(machine.dump());
  const Outcome bad = forerun_outcome("data check " + file.path());
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.out.find("does not say date"), std::string::npos) << bad.out;
  EXPECT_NE(bad.out.find("of the peak rate"), std::string::npos) << bad.out;
  EXPECT_NE(bad.out.find("timed twice differ by 69 %"), std::string::npos) << bad.out;
  const std::string out = file.folder() + "/ops.jsonl";
  const Outcome merged = forerun_outcome("data merge " + out + " " + kMachine + " " + kMachine);
  EXPECT_EQ(merged.code, 0) << merged.out;
  EXPECT_NE(merged.out.find("14 op samples; 14 repeated"), std::string::npos) << merged.out;
  EXPECT_EQ(forerun_outcome("data check " + out).code, 0);
  EXPECT_EQ(forerun_outcome("data merge " + out + " --force " + file.path()).code, 1);  // nothing usable is left
}

}  // namespace
}  // namespace forerun::cli
