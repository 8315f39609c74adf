#include "api/compare.h"

#include <gtest/gtest.h>

#include "api/fit.h"
#include "api/predict.h"
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
  request.prices.gpus = *parse_prices({"h200=3.5,t4=0.5"}, compare_models().devices);
  request.job.iterations = 1000;
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

// A price for every GPU: dearer ones are mostly faster.
CompareRequest priced_run() {
  CompareRequest request = request_for("resnet50", 64, {"h200", "h100", "a100", "l4", "t4"});
  request.prices = {.currency = "EUR",
                    .gpus = *parse_prices({"h200=3.5,h100=3.4,a100=1.5,l4=2,t4=0.5"}, compare_models().devices)};
  request.job.samples = 100'000'000;
  return request;
}

// Is there another GPU at least as fast and as cheap, and better in one?
bool is_beaten(const CompareRow& row, const CompareAnswer& answer) {
  for (const CompareRow& other : answer.rows) {
    const bool no_worse = *other.run_hours <= *row.run_hours && *other.run_cost <= *row.run_cost;
    if (no_worse && (*other.run_hours < *row.run_hours || *other.run_cost < *row.run_cost)) return true;
  }
  return false;
}

TEST(Compare, TheParetoMarkIsOfThoseThatNoneBeats) {
  const auto answer = compare_gpus(priced_run(), compare_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  int marked = 0;
  for (const CompareRow& row : answer->rows) {
    EXPECT_EQ(row.pareto, !is_beaten(row, *answer)) << row.gpu;
    marked += row.pareto ? 1 : 0;
  }
  EXPECT_TRUE(answer->fastest()->pareto && answer->cheapest()->pareto);
  EXPECT_GE(marked, 2);
  EXPECT_LT(marked, 5) << "an L4 dearer than an A100 that is faster";
  EXPECT_NE(to_text(*answer).find("EUR"), std::string::npos);
}

TEST(Compare, SortsByCostAndPutsWhatIsTooLateOrTooDearBehind) {
  CompareRequest request = priced_run();
  request.by = CompareBy::cost;
  const auto by_cost = compare_gpus(request, compare_models());
  ASSERT_TRUE(by_cost.ok()) << by_cost.error().message();
  for (size_t i = 1; i < by_cost->rows.size(); ++i) {
    EXPECT_LE(*by_cost->rows[i - 1].run_cost, *by_cost->rows[i].run_cost);
  }
  EXPECT_EQ(by_cost->cheapest(), by_cost->rows.data());
  // A deadline that the cheapest cannot keep: the cheapest of the others is answered.
  request.deadline_hours = *by_cost->rows[0].run_hours * 0.99;
  const auto in_time = compare_gpus(request, compare_models());
  ASSERT_TRUE(in_time.ok() && in_time->cheapest() != nullptr);
  EXPECT_NE(in_time->cheapest()->gpu, by_cost->cheapest()->gpu);
  EXPECT_LE(*in_time->cheapest()->run_hours, *request.deadline_hours);
  for (const CompareRow& row : in_time->rows) EXPECT_EQ(row.in_time, *row.run_hours <= *request.deadline_hours);
  EXPECT_NE(to_text(*in_time).find("too late"), std::string::npos);
  // A budget that the fastest breaks.
  request.deadline_hours.reset();
  request.by = CompareBy::time;
  request.budget = *by_cost->fastest()->run_cost * 0.99;
  const auto within = compare_gpus(request, compare_models());
  ASSERT_TRUE(within.ok() && within->fastest() != nullptr);
  EXPECT_LE(*within->fastest()->run_cost, *request.budget);
  EXPECT_NE(to_text(*within).find("too dear"), std::string::npos);
  request.budget = 1e-3;
  EXPECT_EQ(compare_gpus(request, compare_models())->fastest(), nullptr);
}

TEST(Compare, TellsAboutTheLargestBatchThatFitFinds) {
  for (const auto& [model, precision] : {std::pair("resnet50", "fp32"), std::pair("gpt2_small", "amp_bf16")}) {
    CompareRequest request = request_for(model, 8, {"h200", "l40s", "rtx-5090"});
    request.model.setup.precision = *parse_precision(precision);
    const auto answer = compare_gpus(request, compare_models());
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    for (const CompareRow& row : answer->rows) {
      FitRequest question;
      question.model = request.model;
      question.changes = false;
      const auto fitted = fit(question, *compare_models().devices.find(row.gpu), compare_models());
      ASSERT_TRUE(fitted.ok() && fitted->largest && row.largest_batch);
      const auto exact = static_cast<double>(*fitted->largest);
      EXPECT_NEAR(static_cast<double>(*row.largest_batch), exact, 0.1 * exact) << row.gpu << " " << model;
    }
  }
}

TEST(Compare, TakesACaptureAndSaysWhatPredictSays) {
  const std::string file = FORERUN_SOURCE_DIR "/tests/corpus/run_record/parametric.jsonl";
  CompareRequest request = request_for(file, 6, {"h200", "t4", "a100"});
  const auto answer = compare_gpus(request, compare_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  for (const CompareRow& row : answer->rows) {
    ASSERT_TRUE(row.prediction.ok()) << row.prediction.error().message();
    const auto predicted = predict_records({.file = file, .gpu = row.gpu, .sizes = {.batch = 6}}, compare_models(), {});
    ASSERT_TRUE(predicted.ok() && predicted->predictions.size() == 1);
    const Prediction& p = predicted->predictions.front();
    EXPECT_EQ(row.prediction->times.iteration, p.times.iteration) << row.gpu;
    EXPECT_EQ(row.prediction->p90, p.p90);
    EXPECT_EQ(row.prediction->memory.peak_reserved, p.memory.peak_reserved);
    EXPECT_EQ(row.prediction->memory_answer.verdict, p.memory_answer.verdict);
  }
  EXPECT_FALSE(
      compare_gpus(request_for(FORERUN_SOURCE_DIR "/tests/data/run1.jsonl.zst", 1, {"t4"}), compare_models()).ok())
      << "several runs";
}

// What is shared between GPUs changes no answer.
TEST(Compare, SaysOfEveryGpuWhatPredictSays) {
  for (const auto& [model, precision] : {std::pair("gpt2_small", "amp_bf16"), std::pair("resnet50", "tf32"),
                                         std::pair("lstm", "fp32"), std::pair("vit_b_16", "amp_fp16")}) {
    CompareRequest request = request_for(model, 4, {});
    request.model.setup.precision = *parse_precision(precision);
    request.largest_batch = false;
    const auto answer = compare_gpus(request, compare_models());
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    for (const CompareRow& row : answer->rows) {
      const Device device = *compare_models().devices.find(row.gpu);
      const auto run = build_run(request.model, device);
      ASSERT_EQ(run.ok(), row.prediction.ok()) << row.gpu;
      if (!run) {
        EXPECT_EQ(run.error().message(), row.prediction.error().message());
        continue;
      }
      const Prediction p = predict(*run, device, compare_models());
      EXPECT_EQ(row.prediction->times.iteration, p.times.iteration) << row.gpu;
      EXPECT_EQ(row.prediction->times.gpu_busy, p.times.gpu_busy) << row.gpu;
      EXPECT_EQ(row.prediction->memory.peak_reserved, p.memory.peak_reserved) << row.gpu;
      EXPECT_EQ(row.prediction->memory_answer.driver.high, p.memory_answer.driver.high) << row.gpu;
    }
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
  priced.prices.gpus = priced.given = {{"Tesla T4", 1}};
  EXPECT_NE(message(priced).find("is not compared"), std::string::npos);
  priced.given.clear();
  EXPECT_NE(message(priced).find("none of the GPUs"), std::string::npos);
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
  for (const CompareRow& row : answer->rows) {
    EXPECT_FALSE(row.may_fit());
    EXPECT_EQ(row.largest_batch, 0);
  }
  EXPECT_NE(to_text(*answer).find("None of them surely holds the run."), std::string::npos);
  EXPECT_NE(to_svg(*answer).find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace forerun
