// Properties of memory over the whole zoo: what a run asks for, and what one needs that does not fit, never falls when its
// batch, image or length grows; a run that does not fit never fits when it grows; what `fit` answers fits, and the next
// larger value does not. (What PyTorch reserves may fall: predicted_memory_test.cpp.)
#include <gtest/gtest.h>

#include <array>

#include "api/fit.h"
#include "base/check.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

const CostModels& all_cost_models() {
  static const CostModels loaded = [] {
    Result<CostModels> result = load_cost_models();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

constexpr std::array<const char*, 5> kGpus = {"t4", "4090", "a100_80gb", "h200", "mi300x"};

// A model of each family, and what of it can grow.
struct Growing {
  std::string model;
  std::string axis;
  int64_t usual = 0;
};
std::vector<Growing> growing() {
  std::vector<Growing> list;
  for (const zoo::Family& family : zoo::families()) {
    for (const zoo::Parameter& parameter : family.parameters) {
      const bool grows = parameter.name == "batch" || parameter.name == "image" || parameter.name == "length";
      if (grows) list.push_back({family.name, parameter.name, std::get<int64_t>(parameter.otherwise)});
    }
  }
  return list;
}

ModelRequest grown(const Growing& what, int64_t value) {
  ModelRequest request{.model = what.model};
  if (what.axis != "batch") request.batch = 2;
  request.settings = {{what.axis, std::to_string(value)}};
  return request;
}

TEST(MemoryGrowth, NeverFalls) {
  const std::vector<Growing> list = growing();
  ASSERT_GT(list.size(), 40U);
  int64_t compared = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const Growing& what = list[i];
    const Device device = *all_cost_models().devices.find(kGpus[i % kGpus.size()]);
    std::optional<PredictedMemory> before;
    for (int64_t value = what.usual; value <= what.usual << 9; value <<= 3) {
      const Result<TrainingRun> run = build_run(grown(what, value), device);
      if (!run) break;  // the model does not take it
      const PredictedMemory memory = predicted_memory(*run, device, all_cost_models().workspaces);
      const std::string where = what.model + " " + what.axis + " " + std::to_string(value) + " on " + device.name;
      if (before) {
        ++compared;
        EXPECT_GE(memory.answer.requested.expected, before->answer.requested.expected) << where;
        if (before->answer.at_least) {
          EXPECT_GE(memory.estimate.peak_reserved, before->estimate.peak_reserved) << where;
        }
        EXPECT_FALSE(memory.fits && !before->fits) << where;
      }
      before = memory;
    }
  }
  EXPECT_GT(compared, 80);
}

TEST(MemoryGrowth, WhatFitAnswersFitsAndTheNextDoesNot) {
  const std::vector<Growing> list = growing();
  int64_t answered = 0;
  for (size_t i = 0; i < list.size(); i += 3) {
    const Growing& what = list[i];
    const Device device = *all_cost_models().devices.find(kGpus[(i / 3) % 3]);
    FitRequest request{.model = grown(what, what.usual), .axis = what.axis, .changes = false};
    request.model.settings.clear();
    const std::string where = what.model + " " + what.axis + " on " + device.name;
    const Result<FitAnswer> answer = fit(request, device, all_cost_models());
    ASSERT_TRUE(answer.ok()) << where << answer.error().message();
    if (!answer->largest) continue;
    ++answered;
    const auto verdict = [&](int64_t value) {
      const Result<TrainingRun> run = build_run(grown(what, value), device);
      if (!run) return FitVerdict::does_not_fit;
      return predicted_memory(*run, device, all_cost_models().workspaces,
                              {.intervals = all_cost_models().memory_intervals})
          .answer.verdict;
    };
    EXPECT_EQ(verdict(*answer->largest), FitVerdict::fits) << where << " " << *answer->largest;
    EXPECT_NE(verdict(*answer->largest + answer->step), FitVerdict::fits) << where << " " << *answer->largest;
    EXPECT_LT(*answer->largest, 10'000'000) << where;
  }
  EXPECT_GT(answered, 10);
}

}  // namespace
}  // namespace forerun
