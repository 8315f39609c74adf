// Rows of a sweep read back give the forms that they were made from.
#include "report/sweep.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

const CostModels& swept_models() {
  static const Result<CostModels> loaded = load_cost_models();
  return *loaded;
}

TEST(SweepLines, GiveTheSameFormsAsPredictions) {
  SweepRequest request;
  request.axes = {
      {"model", {"resnet18", "gpt2_small", "llama2_7b"}}, {"gpu", {"t4", "h200"}}, {"length", {"64", "128"}}};
  request.job.samples = 12345;
  request.prices.gpus = {{"NVIDIA H200", 3.1}, {swept_models().devices.find("t4")->name, 0.35}};
  const auto cases = sweep_cases(request, swept_models());
  ASSERT_TRUE(cases) << cases.error().message();
  SweepTable table(cases->names()), read_table(cases->names());
  int failed = 0;
  const auto take = [&](const SweepCase& one, const Result<Prediction>& prediction) {
    failed += prediction ? 0 : 1;
    const std::string json = sweep_json(cases->names(), one.values, prediction);
    const auto line = read_sweep_json(cases->names(), json, "x");
    ASSERT_TRUE(line) << line.error().message();
    EXPECT_EQ(line->values, one.values);
    ASSERT_EQ(line->prediction.ok(), prediction.ok());
    table.add(one.values, prediction);
    read_table.add(line->values, line->prediction);
    if (prediction) {
      EXPECT_EQ(sweep_csv(cases->names(), line->values, *line->prediction),
                sweep_csv(cases->names(), one.values, *prediction));
    } else {
      EXPECT_EQ(line->prediction.error().message(), prediction.error().message());
    }
  };
  ASSERT_TRUE(sweep(*cases, swept_models(), 2, take).ok());
  EXPECT_EQ(failed, 4) << "resnet18 has no length";
  EXPECT_EQ(read_table.text(), table.text());
}

TEST(SweepLines, WhatIsNoneIsAnError) {
  for (const char* text :
       {"", "{}", "[]", "null", R"({"sweep":{}})", R"({"sweep":{"batch":1}})", R"({"sweep":{"batch":"1"}})",
        R"({"sweep":{"batch":"1"},"error":"x"})", R"({"sweep":{"batch":"1"},"id":5})"}) {
    EXPECT_FALSE(read_sweep_json({"batch"}, text, "x").ok()) << text;
  }
}

}  // namespace
}  // namespace forerun
