// Execution traces, distributed what-ifs and the suite ddl-benchmark as a user meets them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

class ExecutionTraceCommand : public testing::Test {
 protected:
  ExecutionTraceCommand()
      : folder_(std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_execution_trace_command")) {
    std::filesystem::create_directories(folder_);
  }
  ~ExecutionTraceCommand() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  static std::string nodes() {
    return R"({"schema": "1.0.1", "pid": 7, "nodes": [{"name": "nccl:all_reduce", "id": 5, "parent": 2, "tid": 1,
      "inputs": [[3,4,0,250000,4,"cuda:0"]], "input_shapes": [[250000]], "input_types": ["Tensor"],
      "outputs": [], "output_shapes": [], "output_types": []}]})";
  }

  std::filesystem::path folder_;
};

TEST_F(ExecutionTraceCommand, TellsNodesAndMessages) {
  const std::string path = file("rank0.json", nodes());
  const Outcome text = forerun_outcome("trace " + path);
  EXPECT_EQ(text.code, 0) << text.out;
  EXPECT_NE(text.out.find("PyTorch execution trace, schema 1.0.1"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("1.00 MB"), std::string::npos) << text.out;
  const auto json = nlohmann::json::parse(forerun_outcome("trace " + path + " --json").out);
  EXPECT_EQ(json["collectives"][0]["bytes"], 1'000'000);
  EXPECT_EQ(json["kinds"]["communication"], 1);
  EXPECT_NE(forerun_outcome("trace " + path + " --csv").out.find("5,communication,nccl:all_reduce,2"),
            std::string::npos);
}

TEST_F(ExecutionTraceCommand, KindsOfTracesAreNotMixed) {
  const std::string path = file("rank0.json", nodes());
  const std::string other = file("run.json", R"({"traceEvents": []})");
  const Outcome mixed = forerun_outcome("trace " + path + " " + other);
  EXPECT_EQ(mixed.code, 1);
  EXPECT_NE(mixed.out.find("one kind"), std::string::npos) << mixed.out;
  const Outcome drawn = forerun_outcome("trace " + path + " --chrome out.json");
  EXPECT_EQ(drawn.code, 1);
  EXPECT_NE(drawn.out.find("timeline"), std::string::npos) << drawn.out;
}

TEST_F(ExecutionTraceCommand, DistributedWhatIfsOfAModel) {
  const auto time_of = [](const std::string& application) {
    const Outcome outcome = outcome_of(std::string(FORERUN_PROGRAM) + " whatif resnet18 --json --apply " + application);
    EXPECT_EQ(outcome.code, 0) << application;
    return nlohmann::json::parse(outcome.out)["predicted_ms"].get<double>();
  };
  const double alone = time_of("ddp:workers=1");
  EXPECT_GT(time_of("ddp:workers=8,bandwidth_gbps=1"), alone);
  EXPECT_GT(time_of("ddp:workers=8,bandwidth_gbps=1"), time_of("ddp:workers=8,bandwidth_gbps=10"));
  const Outcome wrong = forerun_outcome("whatif resnet18 --apply ddp:network=carrier-pigeon");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.out.find("nearest known"), std::string::npos) << wrong.out;
}

TEST_F(ExecutionTraceCommand, TheSuiteAsksForItsTable) {
  const Outcome missing = forerun_outcome("eval --suite ddl-benchmark --data " + (folder_ / "nothing.csv").string());
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.out.find("nothing.csv"), std::string::npos) << missing.out;
}

}  // namespace
}  // namespace forerun::cli
