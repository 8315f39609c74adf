#include "api/compare.h"

#include <gtest/gtest.h>

#include "report/compare.h"

namespace forerun {
namespace {

const CostModels& compare_models() {
  static const Result<CostModels> loaded = load_cost_models();
  CHECK(loaded.ok(), loaded.error().message());
  return *loaded;
}

CompareRequest request_for(const std::string& model, int64_t batch, std::vector<std::string> gpus) {
  CompareRequest request;
  request.model.model = model;
  request.model.batch = batch;
  request.gpus = std::move(gpus);
  return request;
}

TEST(Compare, SaysWhatPredictSaysAndPutsTheFastestFirst) {
  const auto answer = compare_gpus(request_for("resnet18", 16, {"t4", "h200", "a100_80gb"}), compare_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_EQ(answer->rows.size(), 3U);
  EXPECT_EQ(answer->rows[0].gpu, "NVIDIA H200");
  EXPECT_EQ(answer->rows[2].gpu, "Tesla T4");
  EXPECT_EQ(answer->fastest(), &answer->rows[0]);
  EXPECT_EQ(answer->cheapest(), nullptr);
  EXPECT_DOUBLE_EQ(answer->rows[0].speed, 1);
  for (const CompareRow& row : answer->rows) {
    const Device device = *compare_models().devices.find(row.gpu);
    const auto run = build_run(request_for("resnet18", 16, {}).model, device);
    ASSERT_TRUE(run.ok() && row.prediction.ok());
    EXPECT_EQ(row.prediction->times.iteration, predict(*run, device, compare_models()).times.iteration);
    EXPECT_LE(row.speed, 1);
    EXPECT_FALSE(row.price || row.run_hours);
  }
}

TEST(Compare, AllOfTheCatalogueWhereNoneIsNamed) {
  const auto answer = compare_gpus(request_for("resnet18", 2, {}), compare_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(answer->rows.size(), compare_models().devices.devices().size());
  for (size_t i = 1; i < answer->rows.size(); ++i) {
    const CompareRow &before = answer->rows[i - 1], &row = answer->rows[i];
    if (!before.prediction || !row.prediction) continue;
    const FitVerdict a = before.prediction->memory_answer.verdict, b = row.prediction->memory_answer.verdict;
    EXPECT_LE(a, b);
    if (a == b) {
      EXPECT_LE(before.prediction->times.iteration, row.prediction->times.iteration);
    }
  }
}

TEST(Compare, GpusThatCannotRunItComeLastWithTheReason) {
  CompareRequest request = request_for("resnet18", 2, {"v100", "a100_80gb"});
  request.model.setup.precision = Precision::amp_bf16;
  const auto answer = compare_gpus(request, compare_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_TRUE(answer->rows[0].prediction.ok());
  ASSERT_FALSE(answer->rows[1].prediction.ok());
  EXPECT_FALSE(answer->rows[1].may_fit());
  EXPECT_NE(answer->rows[1].prediction.error().message().find("bfloat16"), std::string::npos);
  EXPECT_NE(to_text(*answer).find("bfloat16"), std::string::npos);
  EXPECT_NE(to_json(*answer).find("\"error\":"), std::string::npos);
  EXPECT_EQ(to_csv(*answer).find("V100"), std::string::npos);
}

TEST(Compare, CostsFollowFromPricesAndRates) {
  CompareRequest request = request_for("resnet18", 16, {"h200", "t4"});
  request.prices = *parse_prices({"h200=3.5,t4=0.5"}, compare_models().devices);
  request.iterations = 1000;
  const auto answer = compare_gpus(request, compare_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  for (const CompareRow& row : answer->rows) {
    const Prediction& p = *row.prediction;
    ASSERT_TRUE(row.price && row.cost_million_samples && row.run_hours && row.run_cost);
    EXPECT_NEAR(*row.run_hours, 1000 * milliseconds(p.times.iteration) / 3.6e6, 1e-9);
    EXPECT_NEAR(*row.run_cost, *row.price * *row.run_hours, 1e-9);
    // A run of as many samples costs the same either way.
    EXPECT_NEAR(*row.run_cost, *row.cost_million_samples * 16 * 1000 / 1e6, 1e-6 * *row.run_cost);
  }
  ASSERT_NE(answer->cheapest(), nullptr);
  for (const CompareRow& row : answer->rows) {
    EXPECT_LE(*answer->cheapest()->cost_million_samples, *row.cost_million_samples);
  }
}

TEST(Compare, TheNumberOfThreadsChangesNothing) {
  CompareRequest request = request_for("resnet18", 4, {});
  request.threads = 1;
  const auto one = compare_gpus(request, compare_models());
  request.threads = 4;
  const auto four = compare_gpus(request, compare_models());
  ASSERT_TRUE(one.ok() && four.ok());
  EXPECT_EQ(to_json(*one), to_json(*four));
  EXPECT_EQ(to_svg(*one), to_svg(*four));
}

TEST(Compare, FaultsOfTheQuestionAreErrors) {
  const auto message = [](const CompareRequest& request) {
    const auto answer = compare_gpus(request, compare_models());
    return answer.ok() ? std::string() : answer.error().message();
  };
  EXPECT_NE(message(request_for("resnet5", 4, {"h200"})).find("resnet50"), std::string::npos);
  EXPECT_NE(message(request_for("resnet18", 4, {"h2000"})).find("h200"), std::string::npos);
  EXPECT_NE(message(request_for("resnet18", 4, {"h200", "NVIDIA H200"})).find("twice"), std::string::npos);
  EXPECT_FALSE(message(request_for("resnet18", -4, {"h200"})).empty());
  CompareRequest priced = request_for("resnet18", 4, {"h200"});
  priced.prices = {{"Tesla T4", 1}};
  EXPECT_NE(message(priced).find("is not compared"), std::string::npos);
  for (const char* text : {"h200", "h200=", "h200=cheap", "h200=nan", "h200=-1", "h200=1e9", "h2000=1", "=1",
                           "h200=1,H200=2", "h200=1,h200=1"}) {
    EXPECT_FALSE(parse_prices({text}, compare_models().devices).ok()) << text;
  }
  EXPECT_TRUE(parse_prices({}, compare_models().devices)->empty());
}

TEST(Compare, NothingFitsIsSaid) {
  const auto answer = compare_gpus(request_for("llama2_7b", 1, {"t4", "l4"}), compare_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(answer->fastest(), nullptr);
  for (const CompareRow& row : answer->rows) EXPECT_FALSE(row.may_fit());
  EXPECT_NE(to_text(*answer).find("None of them surely holds the run."), std::string::npos);
  EXPECT_NE(to_svg(*answer).find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace forerun
