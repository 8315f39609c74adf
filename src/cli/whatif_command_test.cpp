// `forerun whatif` on models as a user meets it; on traces: replay_command_test.cpp.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

using nlohmann::json;

TEST(WhatIfCommand, AnswersForAModel) {
  const Outcome line = forerun_outcome("whatif resnet50 --set batch=64 --apply amp --apply cuda_graphs --json");
  ASSERT_EQ(line.code, 0) << line.out;
  const json row = json::parse(line.out);
  EXPECT_EQ(row["applied"], (json{"amp", "cuda_graphs"}));
  EXPECT_GT(row["baseline_ms"].get<double>(), row["predicted_ms"].get<double>());
  EXPECT_LE(row["low_ms"].get<double>(), row["predicted_ms"].get<double>());
  EXPECT_GE(row["high_ms"].get<double>(), row["predicted_ms"].get<double>());
  EXPECT_GE(row["assumptions"].size(), 2U);
}

TEST(WhatIfCommand, Tf32DoesNotTakeAutocastAway) {
  const Outcome line =
      forerun_outcome("whatif gpt2_small --gpu a100 --precision amp_bf16 --set batch=16 --apply tf32 --json");
  ASSERT_EQ(line.code, 0) << line.out;
  const json row = json::parse(line.out);
  EXPECT_NEAR(row["predicted_ms"].get<double>(), row["baseline_ms"].get<double>(),
              0.01 * row["baseline_ms"].get<double>());
  const Outcome older = forerun_outcome("whatif gpt2_small --gpu t4 --set batch=2 --apply tf32");
  ASSERT_EQ(older.code, 0) << older.out;
  EXPECT_NE(older.out.find("no TF32 units"), std::string::npos) << older.out;
}

TEST(WhatIfCommand, RanksByGain) {
  const Outcome lines = forerun_outcome("whatif resnet18 --set batch=8 --all --json");
  ASSERT_EQ(lines.code, 0) << lines.out;
  double last = 1;
  size_t from = 0, count = 0;
  for (size_t end = 0; (end = lines.out.find('\n', from)) != std::string::npos; from = end + 1, ++count) {
    const json row = json::parse(lines.out.substr(from, end - from));
    const double gain = 1 - row["predicted_ms"].get<double>() / row["baseline_ms"].get<double>();
    EXPECT_LE(gain, last);
    last = gain;
  }
  EXPECT_GE(count, 5U);
}

TEST(WhatIfCommand, AFaultSaysWhatToDo) {
  const Outcome nothing = forerun_outcome("whatif resnet50");
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.out.find("--apply"), std::string::npos) << nothing.out;
  const Outcome name = forerun_outcome("whatif resnet50 --apply cuda_graph");
  EXPECT_NE(name.code, 0);
  EXPECT_NE(name.out.find("cuda_graphs"), std::string::npos) << name.out;
  const Outcome model = forerun_outcome("whatif resnet51 --apply amp");
  EXPECT_NE(model.code, 0);
  EXPECT_NE(model.out.find("resnet50"), std::string::npos) << model.out;
  const Outcome batch = forerun_outcome("whatif resnet50 --set batch=none --apply amp");
  EXPECT_NE(batch.code, 0);
  EXPECT_NE(batch.out.find("batch"), std::string::npos) << batch.out;
  const Outcome update = forerun_outcome("whatif resnet50 --apply fused_adam");  // trained with SGD by default
  EXPECT_NE(update.code, 0);
  EXPECT_NE(update.out.find("Adam"), std::string::npos) << update.out;
  const Outcome gpu = forerun_outcome("whatif resnet50 --apply gpu:name=b999");
  EXPECT_NE(gpu.code, 0);
}

TEST(WhatIfCommand, HelpListsEveryOptimization) {
  const Outcome help = forerun_outcome("whatif --help");
  EXPECT_EQ(help.code, 0);
  for (const char* name : {"amp", "batch", "gpu", "vdnn", "gist", "checkpointing", "ddp"}) {
    EXPECT_NE(help.out.find(std::string("  ") + name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace forerun::cli
