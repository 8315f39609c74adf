#include "lab/eval/learned_suites.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lab/accuracy/published.h"
#include "lab/dataset/test_data.h"
#include "lab/learn/predictors.h"
#include "lab/learn/training_session.h"

namespace forerun {
namespace {

TEST(LearnedSuites, UnknownOnesAreNamedWithTheNearest) {
  const auto results = evaluate_learned("h2000", {});
  ASSERT_FALSE(results.ok());
  EXPECT_NE(results.error().message().find("h200"), std::string::npos);
}

// Every figure that is shown as not trained can be trained by its command.
TEST(LearnedSuites, PublishedSystemsAreInTheListOfPredictors) {
  if (learn::predictors().empty()) GTEST_SKIP() << "built without LibTorch";
  for (const char* suite : {"ets-t4", "h200"}) {
    const auto published = published_figures(suite);
    ASSERT_TRUE(published.ok()) << published.error().message();
    for (const auto* figures : {&published->systems, &published->ablations}) {
      for (const PublishedFigure& figure : *figures) {
        EXPECT_TRUE(learn::make_predictor(figure.predictor).ok()) << figure.predictor;
      }
    }
  }
}

TEST(LearnedSuites, JudgeTrainedWeightsOnTheTestSplitAndApart) {
  if (learn::predictors().empty()) GTEST_SKIP() << "built without LibTorch";
  const std::string folder = testing::TempDir() + "/suites_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  learn::DataSet data = learn::made_up_data(6, 3);
  data.examples().back().split = learn::Split::ood;
  ASSERT_TRUE(data.save(folder + "/data.bin").ok());
  learn::TrainingRequest request{.predictor = "mlp-memory", .out = folder + "/weights"};
  request.options = {.epochs = 2, .device = "cpu", .settings = {{"hidden", "8"}}};
  ASSERT_TRUE(learn::train_and_save(request, data).ok());
  learn::TrainingRequest stray = request;
  stray.options.validate_on = {"no such family"};
  const auto refused = learn::train_and_save(stray, data);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("no such family"), std::string::npos);

  const auto evaluated = evaluate_learned("h200", {.caches = {folder + "/data.bin"}, .weights = {folder + "/weights"}});
  ASSERT_TRUE(evaluated.ok()) << evaluated.error().message();
  const SuiteResult& result = *evaluated;
  EXPECT_EQ(result.examples, 5);
  EXPECT_EQ(result.ood, 1);
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].predictor, "mlp-memory");
  ASSERT_EQ(result.rows[0].evaluations.size(), 1U);
  EXPECT_EQ(result.rows[0].evaluations[0].quantity, learn::Target::peak_bytes);
  EXPECT_EQ(result.rows[0].evaluations[0].all.count, 5);
  EXPECT_EQ(result.rows[0].ood[0].all.count, 1);
  EXPECT_FALSE(evaluate_learned("h200", {.caches = {folder + "/data.bin"}, .weights = {folder}}).ok());
  std::filesystem::remove_all(folder);
}

// Weights of one split may have been trained on what another judges.
TEST(LearnedSuites, RefuseWeightsOfAnotherSplit) {
  if (learn::predictors().empty()) GTEST_SKIP() << "built without LibTorch";
  const std::string folder = testing::TempDir() + "/suites_split_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  learn::DataSet data = learn::made_up_data(8, 10);
  for (learn::Example& example : data.examples()) example.configuration = example.id;
  data.examples().back().kept_back = true;
  data.examples().back().split = learn::Split::ood;
  const std::string cache = folder + "/data.bin";
  ASSERT_TRUE(data.save(cache).ok());
  learn::DataSet divided = data;
  const learn::Division random{.random = true};
  ASSERT_TRUE(learn::divide(divided, random).ok());
  learn::TrainingRequest request{.predictor = "mlp-memory", .out = folder + "/families"};
  request.options = {.epochs = 1, .device = "cpu", .settings = {{"hidden", "8"}}};
  ASSERT_TRUE(learn::train_and_save(request, data).ok());
  request.out = folder + "/random";
  const auto trained = learn::train_and_save(request, divided);
  ASSERT_TRUE(trained.ok()) << trained.error().message();
  EXPECT_EQ(trained->test.at(0).all.count, static_cast<int64_t>(select(divided, learn::Split::test).size()));
  EXPECT_EQ(learn::load_weights(request.out)->division, random);

  const auto judged = [&](const std::string& weights, const learn::Division& division) {
    return evaluate_learned("h200", {.caches = {cache}, .weights = {folder + "/" + weights}, .division = division});
  };
  EXPECT_TRUE(judged("families", {}).ok());
  const auto seen = judged("random", random);
  ASSERT_TRUE(seen.ok()) << seen.error().message();
  EXPECT_EQ(seen->examples, trained->test[0].all.count);
  EXPECT_EQ(seen->ood, 0) << "what is kept back is not out of distribution";
  EXPECT_EQ(seen->rows.at(0).learned_from, "iterations");
  for (const PublishedFigure& figure : seen->published.systems) EXPECT_TRUE(figure.seen) << figure.label;
  for (const auto& refused : {judged("families", random), judged("random", {}), judged("random", {true, 2})}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message().find("cannot be judged on the split"), std::string::npos);
  }

  // Nor may they be what another training starts from, however many steps lie between.
  request.options.start = folder + "/families";
  request.options.settings = {};
  request.out = folder + "/tuned";
  const auto started = learn::train_and_save(request, divided);
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.error().message().find("have seen measured iterations of the split families"), std::string::npos);
  learn::DataSet simulated = learn::made_up_data(8, 4, 3);
  ASSERT_TRUE(learn::train_and_save(request, simulated).ok());
  request.options.start = folder + "/tuned";
  EXPECT_FALSE(learn::train_and_save(request, divided).ok());
  // What has seen simulated iterations alone may.
  request.options.start = "";
  request.options.settings = {{"hidden", "8"}};
  request.out = folder + "/simulated";
  ASSERT_TRUE(learn::train_and_save(request, simulated).ok());
  request.options.start = folder + "/simulated";
  request.options.settings = {};
  request.out = folder + "/pretrained";
  const auto pretrained = learn::train_and_save(request, divided);
  ASSERT_TRUE(pretrained.ok()) << pretrained.error().message();
  EXPECT_EQ(learn::load_weights(request.out)->division, random);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forerun
