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

  const auto evaluated = evaluate_learned("h200", {.cache = folder + "/data.bin", .weights = {folder + "/weights"}});
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
  EXPECT_FALSE(evaluate_learned("h200", {.cache = folder + "/data.bin", .weights = {folder}}).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forerun
