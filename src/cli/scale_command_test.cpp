// `forerun scale` as a user meets it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

bool scale_says(const Outcome& outcome, const char* text) { return outcome.out.find(text) != std::string::npos; }

TEST(ScaleCommand, TableForSeveralNumbersOfGpus) {
  const std::string svg = testing::TempDir() + "/scale.svg";
  const Outcome table =
      forerun_outcome("scale gpt2_xl --gpu a100 --gpus 8,16,32 --strategy zero1 --micro-batch 4 --svg " + svg);
  EXPECT_EQ(table.code, 0) << table.out;
  EXPECT_TRUE(scale_says(table, "tp 1 dp 32 pp 1, mb 4 x 1, ZeRO 1")) << table.out;
  EXPECT_TRUE(scale_says(table, "Memory of a GPU")) << table.out;
  EXPECT_TRUE(std::filesystem::exists(svg));
  std::filesystem::remove(svg);
}

TEST(ScaleCommand, TheStepIsDrawn) {
  const std::string trace = testing::TempDir() + "/step.json", picture = testing::TempDir() + "/step.svg";
  const std::string asked = "scale gpt2_xl --gpu a100 --gpus 8 --strategy pp=4,zb --global-batch 16 --timeline ";
  EXPECT_EQ(forerun_outcome(asked + trace).code, 0);
  EXPECT_EQ(forerun_outcome(asked + picture).code, 0);
  std::ifstream file(trace);
  const auto events = nlohmann::json::parse(file)["traceEvents"];
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const auto& event) { return event["name"] == "forward 0"; }),
            4);
  EXPECT_GT(std::filesystem::file_size(picture), 1000U);
  std::filesystem::remove(trace);
  std::filesystem::remove(picture);
}

TEST(ScaleCommand, AJobIsToldWithItsFailures) {
  const std::string asked =
      "scale Mixtral-8x7B-v0.1 --gpu h100 --gpus 64 --strategy ep=8,zero=1 --tokens 1T --precision bf16";
  const Outcome usual = forerun_outcome(asked);
  EXPECT_TRUE(scale_says(usual, "goodput")) << usual.out;
  EXPECT_TRUE(scale_says(usual, "419 interruptions")) << usual.out;
  const auto whole = [&](const std::string& more) {
    return nlohmann::json::parse(
        outcome_of(std::string(FORERUN_PROGRAM) + " " + asked + " --json" + more).out)["steps"][0]["whole_run"];
  };
  EXPECT_LT(whole(" --mttf 500")["goodput"].get<double>(), whole("")["goodput"].get<double>());
  EXPECT_GT(whole(" --spread 3")["hours"].get<double>(), whole("")["hours"].get<double>());
}

TEST(ScaleCommand, SearchGivesJson) {
  const Outcome found = outcome_of(std::string(FORERUN_PROGRAM) +
                                   " scale gpt2 --set layers=24,width=4096,heads=32 --gpu a100 --gpus 16 "
                                   "--global-batch 64 --search --json");
  ASSERT_EQ(found.code, 0) << found.out;
  const auto written = nlohmann::json::parse(found.out);
  EXPECT_GT(written["plans"].size(), 5);
  EXPECT_LE(written["plans"][0]["step_ms"].get<double>(), written["plans"][1]["step_ms"].get<double>());
}

// Megatron's way is another program, and has a name of its own.
TEST(ScaleCommand, MegatronIsAskedForByName) {
  const std::string asked = "scale gpt2_xl --gpu a100 --gpus 8 --strategy zero1 --micro-batch 4";
  const Outcome eager = forerun_outcome(asked + " --precision amp_bf16");
  const Outcome megatron = forerun_outcome(asked + " --stack megatron");
  EXPECT_EQ(megatron.code, 0) << megatron.out;
  EXPECT_TRUE(scale_says(eager, "precision amp_bf16")) << eager.out;
  EXPECT_TRUE(scale_says(megatron, "as Megatron has it")) << megatron.out;
  EXPECT_NE(eager.out, megatron.out);
}

TEST(ScaleCommand, WhatDoesNotFitExitsWithThree) {
  const Outcome large = forerun_outcome("scale gpt3_175b --gpu a100 --gpus 8");
  EXPECT_EQ(large.code, 3) << large.out;
  EXPECT_TRUE(scale_says(large, "does not fit")) << large.out;
}

TEST(ScaleCommand, FaultsAndUsage) {
  EXPECT_EQ(forerun_outcome("scale").code, 2);
  const Outcome plan = forerun_outcome("scale gpt2 --strategy zer1");
  EXPECT_EQ(plan.code, 1);
  EXPECT_TRUE(scale_says(plan, "zero1")) << plan.out;
  EXPECT_EQ(forerun_outcome("scale gpt2 --set layers").code, 1);
  EXPECT_EQ(forerun_outcome("scale resnet18 --testbed P1w2").code, 1);
}

TEST(ScaleCommand, TestbedMetrics) {
  const Outcome metrics = forerun_outcome("scale resnet18 --testbed P1w2-10G --micro-batch 16");
  EXPECT_EQ(metrics.code, 0) << metrics.out;
  EXPECT_TRUE(scale_says(metrics, "network receive")) << metrics.out;
}

}  // namespace
}  // namespace forerun::cli
