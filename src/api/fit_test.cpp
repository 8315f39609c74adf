#include "api/fit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/fit_search.h"
#include "report/fit.h"

namespace forerun {
namespace {

const CostModels& known() {
  static const CostModels loaded = [] {
    Result<CostModels> result = load_cost_models();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

Device fit_gpu(const std::string& name) { return *known().devices.find(name); }

bool fits(const FitRequest& request, const FitAnswer& answer, int64_t batch) {
  ModelRequest model = request.model;
  model.batch = batch;
  const Result<TrainingRun> run = build_run(model, fit_gpu("h200"));
  CHECK(run.ok(), run.error().message());
  MemoryQuestion question = request.memory;
  question.reserve = answer.reserve;
  question.intervals = known().memory_intervals;
  return predicted_memory(*run, fit_gpu("h200"), known().workspaces, question).answer.verdict == FitVerdict::fits;
}

// Memory of value * per + fixed, with some values that take more than they should.
struct Made {
  int64_t fixed = 0, per = 1, room = 1000, last = 1 << 30;
  std::vector<int64_t> bumps;
  int64_t built = 0;
  WorkControl control = {};
  std::unique_ptr<Work> work = std::make_unique<Work>(control);

  FitSearch search(int64_t smallest = 1, int64_t step = 1) {
    const auto build = [this](int64_t value) -> Result<TrainingRun> {
      ++built;
      if (value > last) return Error{"too long", "", ""};
      TrainingRun run;
      run.input.batch = value;
      return run;
    };
    const auto judge = [this](const TrainingRun& run) {
      const int64_t value = run.input.batch;
      const bool bump = std::find(bumps.begin(), bumps.end(), value) != bumps.end();
      const int64_t need = fixed + per * value + (bump ? room : 0);
      return FitPoint{.fits = need <= room, .allocated = Bytes(need)};
    };
    return {build, judge, smallest, step, Bytes(room), *work};
  }
};

TEST(FitSearch, FindsTheLargestInFewSteps) {
  for (const int64_t room : {5, 17, 1000, 123457, 50000000}) {
    Made made{.fixed = 3, .per = 2, .room = room};
    FitSearch search = made.search();
    EXPECT_EQ(search.largest(), (room - 3) / 2);
    EXPECT_LE(made.built, 14) << room;
    EXPECT_TRUE(search.monotone());
  }
}

TEST(FitSearch, SaysThatNothingFits) {
  Made made{.fixed = 2000};
  EXPECT_FALSE(made.search().largest());
  EXPECT_EQ(made.built, 1);
}

TEST(FitSearch, LooksBehindAValueThatDoesNotFit) {
  Made made{.per = 10, .bumps = {99}};
  FitSearch search = made.search();
  EXPECT_EQ(search.largest(), 100);
  Made last_but_one{.per = 10, .bumps = {100, 97}};
  EXPECT_EQ(last_but_one.search().largest(), 99);
}

// Between 900 and 930 nothing fits; above, the allocator gets by on what it gives back.
TEST(FitSearch, AnswersBelowAGapThatGivingBackJumps) {
  const WorkControl control;
  Work work(control);
  const auto build = [](int64_t value) -> Result<TrainingRun> {
    TrainingRun run;
    run.input.batch = value;
    return run;
  };
  const auto judge = [](const TrainingRun& run) {
    const int64_t value = run.input.batch;
    return FitPoint{.fits = value <= 900 || (value > 930 && value <= 1000),
                    .allocated = Bytes(value),
                    .retries = value > 900 ? 1 : 0};
  };
  FitSearch search(build, judge, 1, 1, Bytes(1000), work);
  EXPECT_EQ(search.largest(), 900);
  EXPECT_FALSE(search.monotone());
  EXPECT_EQ(search.fits_again(), 1000);
  EXPECT_FALSE(search.at(901).fits);
}

TEST(FitSearch, StopsWhereTheModelDoes) {
  Made made{.per = 1, .room = 1000000, .last = 1024};
  FitSearch search = made.search();
  EXPECT_EQ(search.largest(), 1024);
  EXPECT_FALSE(search.refusal(1025).empty());
}

TEST(FitSearch, KeepsToTheStep) {
  Made made{.fixed = 5, .per = 1, .room = 1000};
  EXPECT_EQ(made.search(32, 32).largest(), 992);
}

TEST(FitSearch, StartsFromAnyGuess) {
  for (const int64_t guess : {1, 400, 497, 498, 499, 5000}) {
    Made made{.fixed = 3, .per = 2, .room = 1000};
    EXPECT_EQ(made.search().largest_near(guess), 498) << guess;
    EXPECT_EQ(made.search().largest_near(guess, 300), 498) << guess;
  }
}

TEST(Fit, FindsTheLargestBatch) {
  const FitRequest request{.model = {.model = "resnet50"}};
  const Result<FitAnswer> answer = fit(request, fit_gpu("h200"), known());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_TRUE(answer->largest);
  EXPECT_TRUE(fits(request, *answer, *answer->largest));
  EXPECT_FALSE(fits(request, *answer, *answer->largest + 1));
  EXPECT_GT(*answer->largest, 500);
  EXPECT_EQ(answer->at.input.batch, *answer->largest);
  EXPECT_LE(answer->at.memory_answer.driver.high, fit_gpu("h200").memory);
}

TEST(Fit, AMarginLetsFewerInAndNoneLetsMoreIn) {
  const auto largest = [](std::optional<double> margin) {
    FitRequest request{.model = {.model = "resnet18"}, .changes = false};
    request.memory.margin = margin;
    const Result<FitAnswer> answer = fit(request, fit_gpu("t4"), known());
    CHECK(answer.ok() && answer->largest, "resnet18 fits on a T4");
    return *answer->largest;
  };
  EXPECT_LT(largest(0.25), largest(std::nullopt));
  EXPECT_LT(largest(std::nullopt), largest(0.0));
}

// Values of which even the simulated memory of a GPU without limits could not hold an iteration.
TEST(Fit, IsNotLedAstrayByWhatNoGpuHolds) {
  const Result<FitAnswer> image =
      fit({.model = {.model = "resnet18"}, .axis = "image", .changes = false}, fit_gpu("t4"), known());
  ASSERT_TRUE(image.ok() && image->largest);
  EXPECT_GT(*image->largest, 224);
  EXPECT_LT(*image->largest, 2000);
  EXPECT_TRUE(image->limit.empty()) << image->limit;
  FitRequest llama{.model = {.model = "llama2_7b"}, .changes = false};
  llama.model.setup.precision = Precision::amp_bf16;
  const Result<FitAnswer> batch = fit(llama, fit_gpu("h200"), known());
  ASSERT_TRUE(batch.ok());
  EXPECT_LE(batch->largest.value_or(0), 2);
}

TEST(Fit, TellsWhatLetsALargerOneIn) {
  const Result<FitAnswer> answer = fit({.model = {.model = "gpt2_small"}}, fit_gpu("a100_80gb"), known());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_TRUE(answer->largest);
  for (const FitChange& change : answer->changes) {
    ASSERT_TRUE(change.largest) << change.name;
    EXPECT_GT(*change.largest, *answer->largest) << change.name;
    if (change.name == "bf16 mixed precision" || change.name == "activation checkpointing") {
      EXPECT_GT(change.saving.value, 0) << change.name;
    }
    if (change.name == "activation checkpointing") {
      EXPECT_GT(change.time, 1.05);
    }
    if (change.name == "bf16 mixed precision") {
      EXPECT_LT(change.time, 1);
    }
  }
  EXPECT_GE(answer->changes.size(), 3U);
  const auto written = nlohmann::json::parse(to_json(*answer));
  EXPECT_EQ(written["largest"], *answer->largest);
  EXPECT_EQ(written["changes"].size(), answer->changes.size());
  EXPECT_EQ(written["next"]["fits"], false);
}

TEST(Fit, SaysThatNotEvenOneFits) {
  const Result<FitAnswer> answer = fit({.model = {.model = "llama2_7b"}, .changes = false}, fit_gpu("4090"), known());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_FALSE(answer->largest);
  EXPECT_FALSE(answer->at.fits);
  EXPECT_NE(to_text(*answer).find("not even batch 1 fits"), std::string::npos);
}

TEST(Fit, GoesAlongOtherAxes) {
  const Result<FitAnswer> images =
      fit({.model = {.model = "vit_b_16", .batch = 8}, .axis = "image", .changes = false}, fit_gpu("h200"), known());
  ASSERT_TRUE(images.ok()) << images.error().message();
  EXPECT_EQ(images->step, 16);
  ASSERT_TRUE(images->largest);
  EXPECT_EQ(*images->largest % 16, 0);
  EXPECT_GT(*images->largest, 224);
  const Result<FitAnswer> unknown = fit({.model = {.model = "resnet50"}, .axis = "lenght"}, fit_gpu("h200"), known());
  EXPECT_FALSE(unknown.ok());
}

TEST(Fit, ShardingLetsMoreIn) {
  const FitRequest alone{.model = {.model = "gpt2_medium"}, .changes = false};
  FitRequest sharded = alone;
  sharded.memory.parallel = {.gpus = 8, .zero = 3};
  FitRequest replicas = alone;
  replicas.memory.parallel = {.gpus = 8, .replicas = true};
  const auto a = fit(alone, fit_gpu("4090"), known());
  const auto b = fit(sharded, fit_gpu("4090"), known());
  const auto c = fit(replicas, fit_gpu("4090"), known());
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  ASSERT_TRUE(a->largest && b->largest && c->largest);
  EXPECT_GT(*b->largest, *a->largest);
  EXPECT_LE(*c->largest, *a->largest);
}

}  // namespace
}  // namespace forerun
