// `forerun replay` and `forerun whatif` as a user meets them: what they print and what they exit with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

using nlohmann::json;

// Three steps of four launches each, every 50 us, with kernels of 100 us: the GPU decides.
std::filesystem::path write_trace() {
  json events = json::array();
  const auto add = [&](const char* category, const std::string& name, int process, int thread, double start,
                       double duration, json arguments) {
    events.push_back({{"ph", "X"},
                      {"cat", category},
                      {"name", name},
                      {"pid", process},
                      {"tid", thread},
                      {"ts", start},
                      {"dur", duration},
                      {"args", std::move(arguments)}});
  };
  int id = 0;
  double gpu = 1010;
  for (int step = 0; step < 3; ++step) {
    const double begin = 1000 + 200.0 * step;
    add("user_annotation", "ProfilerStep#" + std::to_string(step), 9, 9, begin, 199, json::object());
    for (int i = 0; i < 4; ++i) {
      ++id;
      const double at = begin + 50.0 * i;
      add("cpu_op", "aten::mm", 9, 9, at, 20, {{"External id", id}});
      add("cuda_runtime", "cudaLaunchKernel", 9, 9, at + 2, 5, {{"correlation", id}});
      gpu = std::max(gpu, at + 8);
      add("kernel", "gemm", 0, 7, gpu, 100, {{"correlation", id}, {"stream", 7}, {"device", 0}});
      gpu += 101;
    }
  }
  const auto path = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_replay_command.json");
  std::ofstream(path) << json{{"traceEvents", events}}.dump();
  return path;
}

TEST(ReplayCommand, ReportsMeasuredAndSimulatedTime) {
  const auto path = write_trace();
  const Outcome text = forerun_outcome("replay " + path.string());
  EXPECT_EQ(text.code, 0) << text.out;
  const Outcome line = forerun_outcome("replay --json " + path.string());
  ASSERT_EQ(line.code, 0) << line.out;
  const json row = json::parse(line.out);
  EXPECT_EQ(row["file"], path.string());
  EXPECT_NEAR(row["measured_ms"].get<double>(), 0.599 / 3, 1e-6);
  EXPECT_NEAR(row["simulated_ms"].get<double>(), row["measured_ms"].get<double>(), 1e-6);
  EXPECT_EQ(row["lags"], "usual");
  EXPECT_EQ(row["device_clock_us"], 0);
  EXPECT_GT(row["tasks"].get<int>(), 36);
  EXPECT_EQ(row["linked"], 1.0);
  EXPECT_EQ(row["inferred_syncs"], 0);
  std::filesystem::remove(path);
}

TEST(ReplayCommand, SaysWhatItsLagsAreWorth) {
  const auto path = write_trace();
  const std::string usual = forerun_outcome("replay " + path.string()).out;
  EXPECT_EQ(forerun_outcome("replay --usual " + path.string()).out, usual);
  EXPECT_EQ(usual.find("by construction"), std::string::npos) << usual;
  const std::string own = forerun_outcome("replay --own-lags " + path.string()).out;
  EXPECT_NE(own.find("by construction"), std::string::npos) << own;
  EXPECT_EQ(json::parse(forerun_outcome("replay --own-lags --json " + path.string()).out)["lags"], "own");
  EXPECT_EQ(forerun_outcome("replay --own-lags --usual " + path.string()).code, 2);
  std::filesystem::remove(path);
}

TEST(ReplayCommand, SaysWhatIsWrong) {
  EXPECT_EQ(forerun_outcome("replay").code, 2);
  const Outcome missing = forerun_outcome("replay /nowhere/trace.json");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.out.find("/nowhere/trace.json"), std::string::npos) << missing.out;
}

TEST(WhatIfCommand, AnswersWithARangeAndItsAssumptions) {
  const auto path = write_trace();
  const Outcome line = forerun_outcome("whatif --json " + path.string() + " --apply faster_kernel:match=gemm,factor=2");
  ASSERT_EQ(line.code, 0) << line.out;
  const json answer = json::parse(line.out);
  EXPECT_NEAR(answer["baseline_ms"].get<double>(), 0.404, 0.002);
  EXPECT_NEAR(answer["predicted_ms"].get<double>(), 0.204, 0.006);
  EXPECT_LT(answer["low_ms"], answer["predicted_ms"]);
  EXPECT_GT(answer["high_ms"], answer["predicted_ms"]);
  EXPECT_FALSE(answer["assumptions"].empty());
  std::filesystem::remove(path);
}

TEST(WhatIfCommand, SweepsAParameter) {
  const std::string asked = "whatif resnet18 --apply ddp --apply p3 --each --sweep workers=2,4 ";
  const auto picture = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_sweep.svg");
  const Outcome text = forerun_outcome(asked + "--svg " + picture.string());
  ASSERT_EQ(text.code, 0) << text.out;
  EXPECT_NE(text.out.find("the second's throughput"), std::string::npos) << text.out;
  std::ifstream drawn(picture);
  EXPECT_NE(std::string(std::istreambuf_iterator<char>(drawn), {}).find("<svg"), std::string::npos);
  std::filesystem::remove(picture);
  const json answer = json::parse(forerun_outcome(asked + "--json").out);
  EXPECT_EQ(answer["curves"].size(), 2U);
  EXPECT_EQ(answer["curves"][0]["points"][1]["value"], "4");
  const std::string table = forerun_outcome(asked + "--csv").out;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 5) << table;
  EXPECT_EQ(forerun_outcome("whatif resnet18 --all --sweep workers=2").code, 2);
  EXPECT_EQ(forerun_outcome("whatif resnet18 --apply amp --csv").code, 2);
  const Outcome wrong = forerun_outcome("whatif resnet18 --apply amp --sweep workers=2");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.out.find("workers"), std::string::npos) << wrong.out;
}

TEST(WhatIfCommand, SaysWhatIsWrong) {
  EXPECT_EQ(forerun_outcome("whatif").code, 2);
  EXPECT_EQ(forerun_outcome("whatif /nowhere/trace.json").code, 2);
  const Outcome unknown = forerun_outcome("whatif /nowhere/trace.json --apply fused_adm");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.out.find("fused_adam"), std::string::npos) << unknown.out;
  EXPECT_EQ(forerun_outcome("whatif /nowhere/trace.json --apply amp").code, 1);
}

}  // namespace
}  // namespace forerun::cli
