// The parts of the suite other-gpus that need no data of others: traced ops as work, and ops that GPUs share.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lab/accuracy/other_gpus_accuracy.h"
#include "lab/eval/other_gpus_judging.h"
#include "lab/eval/traced_work.h"

namespace forerun {
namespace {

TracedOp traced_call(const std::string& call, const std::string& target, std::vector<Shape> inputs, Shape output) {
  return {.call = call,
          .target = target,
          .inputs = std::move(inputs),
          .output = std::move(output),
          .forward_us = 10,
          .backward_us = 20};
}

TEST(TracedWork, ProductsHaveTwoGradients) {
  const TracedOp op = traced_call("call_function", "addmm", {{256}, {64, 128}, {128, 256}}, {64, 256});
  const auto forward = forward_work(op, true);
  ASSERT_EQ(forward.size(), 1U);
  EXPECT_EQ(forward[0].work, learn::product_work({.m = 64, .n = 256, .k = 128}));
  EXPECT_DOUBLE_EQ(forward[0].us, 10);
  const auto backward = backward_work(op);
  ASSERT_EQ(backward.size(), 2U);
  EXPECT_DOUBLE_EQ(backward[0].work.flops + backward[1].work.flops, 2 * forward[0].work.flops);
  EXPECT_DOUBLE_EQ(backward[0].us + backward[1].us, 20);
}

TEST(TracedWork, AttentionIsSpelledOut) {
  const auto scores =
      forward_work(traced_call("call_function", "matmul", {{2, 4, 64, 32}, {2, 4, 32, 64}}, {2, 4, 64, 64}), false);
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0].work.kind, learn::WorkKind::batched_product);
  EXPECT_EQ(scores[0].work.product, (GemmShape{.batch = 8, .m = 64, .n = 64, .k = 32}));
  const auto softmax = forward_work(traced_call("call_function", "softmax", {{2, 4, 64, 64}}, {2, 4, 64, 64}), false);
  ASSERT_EQ(softmax.size(), 1U);
  EXPECT_EQ(softmax[0].work.rows, 2 * 4 * 64);
}

TEST(TracedWork, ViewsNumbersAndDropoutOfInferenceAreNone) {
  EXPECT_TRUE(forward_work(traced_call("call_method", "view", {{64, 64}}, {4096}), false).empty());
  EXPECT_TRUE(forward_work(traced_call("call_function", "add", {{1}}, {1}), false).empty());
  const TracedOp dropout = traced_call("call_module", "h.0.mlp.dropout", {{64, 64}}, {64, 64});
  EXPECT_TRUE(forward_work(dropout, false).empty());
  EXPECT_EQ(forward_work(dropout, true).size(), 1U);
  TracedOp copy = traced_call("call_method", "contiguous", {{64, 64}}, {64, 64});
  EXPECT_TRUE(forward_work(copy, false).empty());
  copy.contiguous_input = false;
  EXPECT_EQ(forward_work(copy, false).size(), 1U);
}

TEST(TracedWork, LayersCountAsOftenAsTheModelHasThem) {
  TracedRun run{.training = false, .layers = 24};
  run.ops = {traced_call("call_module", "lm_head", {{64, 64}}, {64, 128}),
             traced_call("call_module", "h.0.fc1", {{64, 64}}, {64, 128})};
  run.ops[1].in_layer = true;
  EXPECT_EQ(work_of_run(run).times, (std::vector<double>{1, 24}));
}

TEST(SharedOps, AreFoundByNameAndSizes) {
  learn::TimedWorkTable table;
  table.devices.resize(2);
  table.rows.push_back({.gpu = 1, .op = "aten.tanh.default", .work = learn::elementwise_work(4096, 2), .us = 7});
  const SharedOps shared(table);
  ASSERT_NE(shared.on(1, "aten.tanh.default", learn::elementwise_work(4096, 2)), nullptr);
  EXPECT_EQ(shared.on(0, "aten.tanh.default", learn::elementwise_work(4096, 2)), nullptr);
  EXPECT_EQ(shared.on(1, "aten.gelu.default", learn::elementwise_work(4096, 2)), nullptr);
  EXPECT_EQ(shared.on(1, "aten.tanh.default", learn::elementwise_work(4097, 2)), nullptr);
}

TEST(OtherGpusAccuracy, SaysWhatAllThreeAnswerAndWhatWasNotJudged) {
  OtherGpusAccuracy accuracy;
  accuracy.models.push_back({.gpu = "g",
                             .model = "m",
                             .what = "forward",
                             .batch = 1,
                             .length = 2,
                             .measured_ms = 100,
                             .forerun_ms = 110,
                             .neusight_ms = 80,
                             .habitat_ms = {{"a", 130}, {"b", 90}}});
  accuracy.models.push_back({.gpu = "g",
                             .model = "n",
                             .what = "forward",
                             .batch = 1,
                             .length = 2,
                             .measured_ms = 100,
                             .forerun_ms = {},
                             .neusight_ms = 150,
                             .habitat_ms = {}});
  accuracy.not_judged = {"something: why"};
  const std::string text = to_text(accuracy);
  EXPECT_NE(text.find("on the 1 runs that all answer: forerun 10.0 %, habitat 20.0 %, neusight 20.0 %"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Not judged: 1\n  something: why"), std::string::npos) << text;
  accuracy.data = "tables, fingerprint ab";
  accuracy.date = "2026-11-17";
  accuracy.weights = {{"habitat", "cd"}};
  EXPECT_EQ(to_text(accuracy).find("tables, fingerprint ab\n  judged 2026-11-17"), 0U);
  const auto json = nlohmann::json::parse(to_json(accuracy));
  EXPECT_EQ(json.at("data"), accuracy.data);
  for (const auto& row : json.at("predictors")) EXPECT_EQ(row.at("weights"), row.at("label") == "habitat" ? "cd" : "");
  ASSERT_TRUE(add_published(accuracy).ok());
  EXPECT_GT(accuracy.habitat_published, 0);
}

}  // namespace
}  // namespace forerun
