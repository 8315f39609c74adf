#include "lab/accuracy/published.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <tuple>

namespace forerun {
namespace {

using learn::Target;

TEST(Published, EveryFigureIsReadWithItsUnit) {
  std::set<std::tuple<std::string, std::string, Target>> seen;
  size_t systems = 0;
  size_t ablations = 0;
  for (const char* suite : {"ets-t4", "h200"}) {
    const auto published = published_figures(suite);
    ASSERT_TRUE(published.ok()) << published.error().message();
    systems += published->systems.size();
    ablations += published->ablations.size();
    for (const auto* figures : {&published->systems, &published->ablations}) {
      for (const PublishedFigure& figure : *figures) {
        EXPECT_TRUE(seen.emplace(figure.suite, figure.label, figure.quantity).second) << figure.label;
        EXPECT_TRUE(figure.mre > 0 && figure.mre < 1) << figure.label;
        EXPECT_EQ(figure.suite, suite);
        EXPECT_FALSE(figure.source.empty()) << figure.label;
      }
    }
  }
  EXPECT_EQ(systems, 16U);
  EXPECT_EQ(ablations, 37U);
  const auto h200 = published_figures("h200");
  ASSERT_TRUE(h200.ok());
  for (const PublishedFigure& figure : h200->systems) EXPECT_EQ(figure.seen, figure.system != "ETS") << figure.label;
  const PublishedFigure& last = h200->ablations.back();
  EXPECT_EQ(last.label, "dnnperf-memory-mean");
  EXPECT_EQ(last.quantity, Target::peak_bytes);
  EXPECT_EQ(last.mre, 0.198);
  EXPECT_EQ(last.rmse, 2.4);
  EXPECT_EQ(training_command(last),
            "forerun train dnnperf-memory --suite h200 --set readout=mean --out data/weights/h200/dnnperf-memory-mean");
}

TEST(Published, DriplesFiguresAreRead) {
  const auto driple = published_driple();
  ASSERT_TRUE(driple.ok()) << driple.error().message();
  EXPECT_EQ(driple->errors, (std::array<double, 4>{0.11, 0.09, 0.17, 0.15}));
  EXPECT_EQ(driple->time_ratio, 7.3);
  EXPECT_FALSE(
      published_driple(*JsonObject::parse(R"({"schema": "forerun.papers.driple/1", "paper": "p"})", "t.json")).ok());
}

struct BrokenFigures {
  std::string from, to, says;
};

class RefusedFigures : public testing::TestWithParam<BrokenFigures> {};

TEST_P(RefusedFigures, AreNamed) {
  std::string text = R"({"schema": "forerun.papers.figures/1", "paper": "p", "tables": [
    {"kind": "systems", "suite": "h200", "source": "s", "rows": [
      {"label": "a", "predictor": "ets", "system": "A", "quantity": "iteration_ms", "mre": 0.1, "rmse_ms": 3},
      {"label": "b", "predictor": "ets", "system": "B", "quantity": "iteration_ms", "mre": 0.2}]}]})";
  ASSERT_TRUE(figures_of_paper(*JsonObject::parse(text, "t.json")).ok());
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, GetParam().from.size(), GetParam().to);
  const auto figures = figures_of_paper(*JsonObject::parse(text, "t.json"));
  ASSERT_FALSE(figures.ok());
  EXPECT_NE(figures.error().message().find("t.json"), std::string::npos) << figures.error().message();
  EXPECT_NE(figures.error().message().find(GetParam().says), std::string::npos) << figures.error().message();
}

INSTANTIATE_TEST_SUITE_P(All, RefusedFigures,
                         testing::Values(BrokenFigures{"figures/1", "figures/2", "schema"},
                                         BrokenFigures{"\"systems\"", "\"tables\"", "systems or ablations"},
                                         BrokenFigures{"iteration_ms", "seconds", "no quantity 'seconds'"},
                                         BrokenFigures{"0.1,", "10,", "share of 1"},
                                         BrokenFigures{"\"mre\": 0.2", "\"error\": 0.2", "mre: the field is missing"},
                                         BrokenFigures{"rmse_ms", "rmse_gb", "rmse_gb: the field is not known"},
                                         BrokenFigures{"\"b\"", "\"a\"", "two figures"},
                                         BrokenFigures{"\"suite\": \"h200\", ", "", "suite: the field is missing"}));

TEST(Published, AFolderWithoutPapersIsNamed) {
  const auto none = published_figures("h200", std::filesystem::path(testing::TempDir()) / "no_papers");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message().find("no_papers"), std::string::npos);
}

}  // namespace
}  // namespace forerun
