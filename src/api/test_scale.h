// The cost models and the answers that the tests of `scale` share.
#pragma once

#include <gtest/gtest.h>

#include "api/scale.h"
#include "base/check.h"
#include "predict/predict.h"

namespace forerun {

inline const CostModels& scale_cost_models() {
  static const CostModels loaded = [] {
    Result<CostModels> result = load_cost_models();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

inline ScaleAnswer answer_to(const ScaleQuestion& question) {
  auto answer = scale_out(question, scale_cost_models());
  EXPECT_TRUE(answer) << answer.error().message();
  return answer ? std::move(*answer) : ScaleAnswer();
}

}  // namespace forerun
