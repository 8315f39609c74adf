#include "lab/accuracy/evaluation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace forerun {
namespace {

using learn::Evaluation;
using learn::Target;

Evaluation errors(Target quantity, double mre) {
  Evaluation evaluation{.quantity = quantity};
  evaluation.all = {.count = 4, .mre = mre, .median = mre, .p90 = 2 * mre, .bias = -mre, .rmse = 3e9};
  evaluation.by_bound = {{"gpu", {.count = 3, .mre = 0.031, .p90 = 0.071}},
                         {"host", {.count = 1, .mre = 0.092, .p90 = 0.194}}};
  evaluation.by_group = {{"vgg", {.count = 4, .mre = mre}}};
  return evaluation;
}

SuiteResult some_result() {
  SuiteRow dnnperf{.predictor = "dnnperf-memory", .label = "dnnperf-memory"};
  dnnperf.evaluations = {errors(Target::peak_bytes, 0.123)};
  dnnperf.ood = {errors(Target::peak_bytes, 0.456)};
  SuiteRow gat{.predictor = "dnnperf-memory", .label = "dnnperf-memory-gat"};
  gat.evaluations = {errors(Target::peak_bytes, 0.234)};
  const auto published = published_figures("h200");
  EXPECT_TRUE(published.ok()) << published.error().message();
  return {.suite = "h200",
          .data = "made up",
          .examples = 4,
          .ood = 2,
          .ablations = true,
          .published = *published,
          .rows = {dnnperf, gat}};
}

// The lines of a text that start with this word.
std::vector<std::string> lines_of(const std::string& text, const std::string& word) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    if (words >> first && first == word) found.push_back(line);
  }
  return found;
}

TEST(EvaluationText, HasOursAndThePublishedFigureInOneLine) {
  const auto lines = lines_of(to_text(some_result()), "dnnperf-memory");
  ASSERT_EQ(lines.size(), 1U);
  for (const char* cell : {"12.3 %", "24.6 %", "-12.3 %", "3.0", "3.1 %", "7.1 %", "9.2 %", "19.4 %", "DNNPerf",
                           "13.7 %", "1.8", "13.3 %"}) {
    EXPECT_NE(lines[0].find(cell), std::string::npos) << cell << " in " << lines[0];
  }
}

TEST(EvaluationText, SaysWhatIsNotTrainedAndHowToTrainIt) {
  const std::string text = to_text(some_result());
  EXPECT_NE(text.find("not trained: forerun train birnn-memory --suite h200 --out data/weights/h200/birnn-memory\n"),
            std::string::npos);
  EXPECT_EQ(text.find("not trained: forerun train dnnperf-memory --suite h200 --out"), std::string::npos);
  const auto birnn = lines_of(text, "birnn-memory");
  ASSERT_EQ(birnn.size(), 1U);
  EXPECT_NE(birnn[0].find("22.3 %"), std::string::npos);
}

TEST(EvaluationText, KeepsAblationsAndWhatIsApartInTheirOwnTables) {
  const std::string text = to_text(some_result());
  const size_t ablations = text.find("\nablations\n");
  const size_t ood = text.find("Out of distribution");
  ASSERT_NE(ablations, std::string::npos);
  ASSERT_NE(ood, std::string::npos);
  EXPECT_EQ(text.find("23.4 %"), text.find("23.4 %", ablations));
  EXPECT_EQ(text.find("45.6 %"), text.find("45.6 %", ood));
  EXPECT_NE(text.find("45.6 %"), std::string::npos);
  SuiteResult without = some_result();
  without.ablations = false;
  EXPECT_EQ(to_text(without).find("ablations"), std::string::npos);
}

TEST(EvaluationText, SaysWhatARowLearnedFromAndWhenItWasKept) {
  SuiteResult result = some_result();
  result.rows[0].learned_from = "iterations, simulation";
  SuiteRow kept{.predictor = "forerun", .label = "forerun, iterations alone", .learned_from = "iterations"};
  kept.evaluations = {errors(Target::peak_bytes, 0.345)};
  kept.kept = true;
  kept.kept_date = "2026-11-17";
  result.rows.push_back(kept);
  std::string text = to_text(result);
  EXPECT_NE(lines_of(text, "dnnperf-memory").at(0).find("iterations, simulation"), std::string::npos);
  EXPECT_NE(text.find("* forerun, iterations alone: kept from 2026-11-17, not computed now\n"), std::string::npos);
  EXPECT_NE(text.find("learned from: iterations that were measured; op samples"), std::string::npos);
  EXPECT_EQ(text.find("labelled by cost models that were fitted"), std::string::npos);
  result.rows.back().stale = true;
  EXPECT_NE(to_text(result).find("** forerun, iterations alone: kept from 2026-11-17, not computed now, and of other"),
            std::string::npos);
  result.division.random = true;
  text = to_text(result);
  EXPECT_NE(text.find("labelled by cost models that were fitted"), std::string::npos);
  EXPECT_NE(text.find("forerun train birnn-memory --suite h200 --split random:1 --out "
                      "data/weights/h200-random/birnn-memory\n"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(result)).at("split"), "random:1");
}

TEST(EvaluationText, ShowsAGpuThatIsNewWithWhereItIsFrom) {
  SuiteResult result = some_result();
  EXPECT_EQ(to_text(result).find("A GPU that is new"), std::string::npos);
  learn::FewRow row{.predictor = "ets", .start = learn::kMetaStart, .gpu = "NVIDIA H200", .few = 5, .draws = 3};
  row.errors = {{.epochs = 10, .mre = 0.177, .least = 0.177, .most = 0.177}};
  row.device = "a machine, cuda:0";
  row.date = "2026-11-17";
  row.data = "made up";
  result.few = {row};
  EXPECT_NE(to_text(result).find("17.7 %"), std::string::npos) << to_text(result);
  EXPECT_NE(to_text(result).find("* kept from 2026-11-17 on a machine, cuda:0"), std::string::npos) << to_text(result);
  EXPECT_EQ(to_text(result).find("** kept"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(result)).at("few").at(0).at("errors").at(0).at("mre"), 0.177);
  result.few[0].data = "before";
  EXPECT_NE(to_text(result).find("** kept"), std::string::npos) << to_text(result);
}

TEST(EvaluationJson, HoldsTheSame) {
  const auto json = nlohmann::json::parse(to_json(some_result()));
  EXPECT_EQ(json.at("schema"), "forerun.eval.h200/1");
  EXPECT_EQ(json.at("published").size(), 25U);  // 13 systems, 12 ablations
  EXPECT_EQ(json.at("predictors").size(), 2U);
  EXPECT_EQ(json.at("predictors")[0].at("evaluations")[0].at("all").at("mre"), 0.123);
  for (const auto& figure : json.at("published")) {
    EXPECT_EQ(figure.at("trained"),
              figure.at("label") == "dnnperf-memory" || figure.at("label") == "dnnperf-memory-gat");
  }
}

}  // namespace
}  // namespace forerun
