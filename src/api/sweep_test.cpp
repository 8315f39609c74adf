#include "api/sweep.h"

#include <gtest/gtest.h>

#include "base/options_text.h"

namespace forerun {
namespace {

using Texts = std::vector<std::string>;

TEST(SweepAxisText, ListsAndRanges) {
  EXPECT_EQ(parse_axis("image=224,384")->values, (Texts{"224", "384"}));
  EXPECT_EQ(parse_axis("batch=8..64*2")->values, (Texts{"8", "16", "32", "64"}));
  EXPECT_EQ(parse_axis("batch=1..4")->values, (Texts{"1", "2", "3", "4"}));
  EXPECT_EQ(parse_axis("batch=1..8+3,100")->values, (Texts{"1", "4", "7", "100"}));
  EXPECT_EQ(parse_axis("optimizer=sgd:impl=fused,adamw")->name, "optimizer");
  EXPECT_EQ(parse_axis("optimizer=sgd:impl=fused,adamw")->values, (Texts{"sgd:impl=fused", "adamw"}));
}

TEST(SweepAxisText, FaultsAreNamed) {
  for (const char* text : {"", "batch", "=1", "batch=", "batch=1,,2", "batch=8..4", "batch=0..9*2", "batch=1..9*1",
                           "batch=1..9+0", "batch=1..9999999999"}) {
    const auto axis = parse_axis(text);
    ASSERT_FALSE(axis) << text;
    EXPECT_EQ(axis.error().where, "--over") << text;
  }
}

TEST(SweepAxisText, RangesAtTheEndOfNumbers) {
  EXPECT_EQ(parse_axis("x=9223372036854775806..9223372036854775807")->values.size(), 2U);
  EXPECT_EQ(parse_axis("x=1..9223372036854775807*2")->values.size(), 63U);
}

TEST(SweepProduct, LastAxisChangesFastest) {
  const std::vector<SweepAxis> axes = {{"a", {"1", "2"}}, {"b", {"x", "y"}}};
  ASSERT_EQ(*product_size(axes), 4U);
  std::vector<Texts> product;
  for (size_t i = 0; i < 4; ++i) product.push_back(product_values(axes, i));
  EXPECT_EQ(product, (std::vector<Texts>{{"1", "x"}, {"1", "y"}, {"2", "x"}, {"2", "y"}}));
  const SweepAxis thousand = *parse_axis("n=1..1000");
  EXPECT_FALSE(product_size({thousand, thousand, thousand}));
  EXPECT_FALSE(product_size({{"a", {}}})) << "no value";
}

SweepRequest images(const Texts& values) {
  SweepRequest request;
  request.base.model = "alexnet";
  request.fixed = {{"batch", "4"}};
  request.axes = {{"image", values}};
  return request;
}

TEST(Sweep, ThreadsGiveTheSameInTheSameOrder) {
  const auto cost_models = load_cost_models();
  ASSERT_TRUE(cost_models);
  const auto cases =
      sweep_cases(images({"224", "1", "96", "128", "64", "160", "192", "256"}), *cost_models);  // 1: too small
  ASSERT_TRUE(cases) << cases.error().message();
  const auto answers = [&](unsigned threads) {
    std::vector<std::pair<std::string, int64_t>> found;
    const auto take = [&](const SweepCase& c, const Result<Prediction>& p) {
      found.emplace_back(c.values.front(), p ? p->times.iteration.value : -1);
    };
    EXPECT_TRUE(sweep(*cases, *cost_models, threads, take).ok());
    return found;
  };
  const auto alone = answers(1);
  ASSERT_EQ(alone.size(), cases->size());
  EXPECT_EQ(alone[1].second, -1);
  EXPECT_GT(alone[2].second, 0);
  EXPECT_LT(alone[2].second, alone[7].second);
  EXPECT_EQ(answers(4), alone);
}

TEST(Sweep, CasesAreMadeWhenAskedFor) {
  const auto cost_models = load_cost_models();
  ASSERT_TRUE(cost_models);
  SweepRequest request;
  request.base.model = "resnet18";
  request.axes = {*parse_axis("gpu=t4,l4,a100,v100,h200"), *parse_axis("batch=1..1000000"), *parse_axis("seed=1,2")};
  const Bytes before = resident_memory();
  const auto cases = sweep_cases(request, *cost_models);
  ASSERT_TRUE(cases) << cases.error().message();
  EXPECT_EQ(cases->size(), 10'000'000U);
  EXPECT_EQ((*cases)[9'999'999].values, (Texts{"h200", "1000000", "2"}));
  EXPECT_EQ((*cases)[2'000'000].device.name, cost_models->devices.find("l4")->name);
  EXPECT_EQ((*cases)[3].request.batch, 2);
  EXPECT_LT((resident_memory() - before).value, int64_t{500} << 20) << "the axes are copied, and nothing else";
}

TEST(Sweep, TellsHoursAndCostOfTheWholeRun) {
  const auto cost_models = load_cost_models();
  ASSERT_TRUE(cost_models);
  SweepRequest request;
  request.base.model = "resnet18";
  request.axes = {{"batch", {"2", "4"}}};
  request.job.samples = 1000;
  request.prices.gpus = {{"NVIDIA H200", 2}};
  const auto cases = sweep_cases(request, *cost_models);
  ASSERT_TRUE(cases.ok()) << cases.error().message();
  std::vector<int64_t> iterations;
  const auto take = [&](const SweepCase&, const Result<Prediction>& p) {
    ASSERT_TRUE(p && p->job && p->job->cost());
    EXPECT_DOUBLE_EQ(p->job->cost()->expected, 2 * p->job->hours);
    iterations.push_back(p->job->iterations);
  };
  EXPECT_TRUE(sweep(*cases, *cost_models, 1, take).ok());
  EXPECT_EQ(iterations, (std::vector<int64_t>{500, 250}));
  request.gpu = "t4";
  EXPECT_FALSE(sweep_cases(request, *cost_models).ok()) << "it has no price";
  request.prices = {};
  request.job.tokens = 5;
  EXPECT_FALSE(sweep_cases(request, *cost_models).ok()) << "two lengths";
}

TEST(Sweep, WordsOfAxesAreParsedByTheirNames) {
  const auto cost_models = load_cost_models();
  ASSERT_TRUE(cost_models);
  SweepRequest request;
  request.base.model = "resnet18";
  request.fixed = {{"image", "96"}, {"channels_last", "true"}};
  request.axes = {{"gpu", {"t4", "h200"}}, {"batch", {"2", "4"}}, {"optimizer", {"adamw", "sgd:momentum=0.5"}}};
  const auto cases = sweep_cases(request, *cost_models);
  ASSERT_TRUE(cases.ok()) << cases.error().message();
  ASSERT_EQ(cases->size(), 8U);
  EXPECT_EQ((*cases)[7].values, (std::vector<std::string>{"h200", "4", "sgd:momentum=0.5"}));
  EXPECT_EQ((*cases)[7].device.name, "NVIDIA H200");
  EXPECT_EQ((*cases)[7].request.batch, 4);
  EXPECT_EQ((*cases)[7].request.setup.optimizer.momentum, 0.5);
  EXPECT_FALSE((*cases)[7].request.default_optimizer);
  EXPECT_TRUE((*cases)[7].request.setup.channels_last);
  EXPECT_EQ((*cases)[7].request.settings.size(), 1U);
  for (const auto& [name, value] : KeyValues{{"batch", "0"},
                                             {"batch", "-1"},
                                             {"batch", "1.5"},
                                             {"batch", "99999999999999999999"},
                                             {"batch", "1099511627776"},
                                             {"precision", "int8"},
                                             {"checkpoint", "some"},
                                             {"accumulate", "0"},
                                             {"lora", "x"},
                                             {"quantize", "nf5"},
                                             {"optimizer", "sgd:lr=nan"},
                                             {"channels_last", "maybe"},
                                             {"gpu", "h2000"}}) {
    request.axes = {{name, {value}}};
    EXPECT_FALSE(sweep_cases(request, *cost_models).ok()) << name << " " << value;
  }
  request.base.model.clear();
  request.axes = {{"batch", {"2"}}};
  EXPECT_FALSE(sweep_cases(request, *cost_models).ok()) << "no model";
}

}  // namespace
}  // namespace forerun
