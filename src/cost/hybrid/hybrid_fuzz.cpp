// Fuzzes the reader of the hybrid cost model's file. What is read must be written back as it was, and must answer.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cost/hybrid/hybrid.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto residual_model = forerun::hybrid::from_bytes(bytes);
  if (!residual_model.ok()) {
    CHECK(!residual_model.error().what.empty(), "an error without what");
    return 0;
  }
  CHECK(forerun::hybrid::to_bytes(*residual_model) == bytes, "written otherwise than it was read");
  for (const auto& model : residual_model->models) {
    if (!model || model->ops.empty()) continue;
    forerun::hybrid::FeatureRow feature_row;
    feature_row.op = model->ops.front();
    feature_row.analytic_us = 1;
    for (size_t i = 0; i < forerun::hybrid::kModelCount; ++i) {
      feature_row.model = static_cast<forerun::hybrid::Model>(i);
      static_cast<void>(residual_model->cost(feature_row));
    }
  }
  return 0;
}
