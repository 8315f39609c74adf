#include "predict/host_remedies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "api/predict.h"

namespace forerun {
namespace {

const CostModels& remedy_cost_models() {
  static const CostModels loaded = [] {
    Result<CostModels> result = load_cost_models();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

TEST(HostRemedies, SayWhatWouldTakeTheHostsBoundAway) {
  const PredictRequest question{.model = {.model = "resnet18", .batch = 4}};
  const Result<PredictAnswer> answer = predict(question, remedy_cost_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  const Prediction& p = answer->prediction;
  ASSERT_EQ(p.times.bound, Bottleneck::host);
  const auto remedy = [&](const char* kind) {
    const auto found =
        std::find_if(p.remedies.begin(), p.remedies.end(), [&](const auto& r) { return r.kind == kind; });
    EXPECT_NE(found, p.remedies.end()) << kind;
    return found == p.remedies.end() ? HostRemedy() : *found;
  };
  const HostRemedy graphs = remedy("cuda_graphs"), fused = remedy("fused_optimizer"), batch = remedy("batch");
  EXPECT_GE(graphs.iteration, p.times.gpu_busy);
  EXPECT_LT(graphs.iteration, p.times.iteration);
  EXPECT_LT(fused.iteration, p.times.iteration);
  EXPECT_GT(batch.samples_per_second, p.samples_per_second);
  // As the same verb answers for it.
  PredictRequest doubled = question;
  doubled.model.batch = std::stoll(batch.what.substr(batch.what.find(' ')));
  const Prediction larger = predict(doubled, remedy_cost_models())->prediction;
  EXPECT_EQ(larger.times.iteration, batch.iteration);
  EXPECT_NE(larger.times.bound, Bottleneck::host);
  EXPECT_TRUE(larger.remedies.empty());
}

}  // namespace
}  // namespace forerun
