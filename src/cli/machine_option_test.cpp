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
                                  "scale resnet18 --gpus 2" + words, "scale resnet18 --testbed P1w2-10G" + words,
                                  "slurm ask 'model=resnet18 iterations=10'" + words}) {
    const Outcome outcome = forerun_outcome(call);
    EXPECT_EQ(outcome.code, 0) << call << "\n" << outcome.out;
    if (!call.starts_with("compare") && !call.starts_with("sweep")) {
      EXPECT_NE(outcome.out.find("calibrated on 2026-11-17 by"), std::string::npos) << call << "\n" << outcome.out;
    }
  }
}

// The answer of a verb that prints JSON.
nlohmann::json answered(const std::string& words) {
  const Outcome outcome = forerun_outcome(words);
  EXPECT_EQ(outcome.code, 0) << words << "\n" << outcome.out;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

TEST(MachineOption, JobsTakeAsLongAsOnTheMachine) {
  auto machine = read_json(kMachine);
  machine["gpu"]["device"]["name"] = machine["card"]["gpu"] = "NVIDIA A100-SXM4-80GB";
  const WrittenFile file(machine.dump());
  const WrittenFile jobs("id,submit,gpus,model,batch,iterations\na,0,1,resnet18,32,1000\n", "jobs.csv");
  const std::string schedule = "schedule " + jobs.path() + " --gpus a100_80gb=1 --policy fifo --json --machine ";
  const auto plain = answered(schedule + "none");
  const auto calibrated = answered(schedule + file.path());
  EXPECT_FALSE(plain.contains("calibration"));
  ASSERT_TRUE(calibrated.contains("calibration")) << calibrated;
  EXPECT_NE(calibrated["calibration"].dump().find("14 ops of this GPU"), std::string::npos) << calibrated;
  const auto one = answered("predict resnet18 --batch 32 --json --gpu a100_80gb --machine " + file.path());
  EXPECT_NEAR(calibrated["mean_jct"].get<double>(), one["iter_ms"].get<double>(), 1e-3);
  EXPECT_NE(plain["mean_jct"], calibrated["mean_jct"]);

  const std::string ask = "slurm ask 'model=resnet18 batch=32 iterations=1000' --json --machine ";
  const auto limit = answered(ask + file.path());
  EXPECT_EQ(limit["gpu"], "NVIDIA A100-SXM4-80GB") << "that of the file, where the job names none";
  EXPECT_NEAR(limit["step_ms"].get<double>(), one["iter_ms"].get<double>(), 1e-3);
  EXPECT_NE(limit["calibration"].dump().find("14 ops of this GPU"), std::string::npos) << limit;
  EXPECT_EQ(answered(ask + "none")["gpu"], "h200");
  EXPECT_EQ(answered("scale resnet18 --gpus 2 --json --machine " + file.path())["gpu"], "NVIDIA A100-SXM4-80GB");
}

TEST(MachineOption, AMachineThatNoJobNeedsIsSaidToGoUnused) {
  const auto answer = answered("schedule --synthetic jobs=10,gpus=8 --policy fifo --json --machine " + kMachine);
  ASSERT_TRUE(answer.contains("calibration")) << answer;
  EXPECT_NE(answer["calibration"].dump().find("not used"), std::string::npos) << answer;
}

TEST(MachineOption, TheConfiguredFileCountsForJobsAndIsNamedForShards) {
  const WrittenFile file(read_json(kHostOnly).dump(), "forerun/machine.json");
  const WrittenFile jobs("id,submit,gpus,model,batch,iterations\na,0,1,resnet18,32,1000\n", "jobs.csv");
  const std::string schedule = "schedule " + jobs.path() + " --gpus h200=1 --policy fifo";
  const auto configured = [&](const std::string& words) {
    return outcome_of("XDG_CONFIG_HOME=" + file.folder() + " " + FORERUN_PROGRAM + " " + words + " 2>&1");
  };
  const Outcome counted = configured(schedule + " --json");
  EXPECT_EQ(counted.code, 0) << counted.out;
  EXPECT_NE(counted.out.find("the host without a GPU"), std::string::npos) << counted.out;
  const Outcome shard = configured(schedule + " --shard 0/1 --out " + file.folder() + "/part");
  EXPECT_EQ(shard.code, 1);
  EXPECT_NE(shard.out.find("name it with --machine"), std::string::npos) << shard.out;
}

TEST(MachineOption, CountsInPlansOfTransformersToo) {
  const std::string words = "scale gpt2_small --gpus 8 --json --gpu h200 --machine ";
  EXPECT_NE(answered(words + "none")["steps"][0]["step_ms"], answered(words + kMachine)["steps"][0]["step_ms"]);
}

TEST(MachineOption, FormulasOfMegatronSayThatNothingOfItCounts) {
  const std::string words = "scale gpt2_small --stack megatron --gpus 8 --json --gpu h200 --machine ";
  const auto plain = answered(words + "none");
  const auto calibrated = answered(words + kMachine);
  EXPECT_EQ(plain["steps"][0]["step_ms"], calibrated["steps"][0]["step_ms"]);
  EXPECT_NE(assumptions_of(calibrated).find("neither its ops nor its host count"), std::string::npos);
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
