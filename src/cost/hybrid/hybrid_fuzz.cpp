// Fuzzes the readers of the hybrid cost model's sections, head and forests: the first byte tells which. What is read must be
// written back as it was, and must answer.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cost/hybrid/hybrid_file.h"

namespace {

using namespace forerun::hybrid;

void read_head(std::string_view bytes) {
  const auto head = head_from_bytes(bytes);
  CHECK(head.ok() || !head.error().what.empty(), "an error without what");
  CHECK(!head.ok() || head_to_bytes(*head) == bytes, "written otherwise than it was read");
}

void read_forests(std::string_view bytes) {
  const auto forests = forests_from_bytes(bytes);
  CHECK(forests.ok() || !forests.error().what.empty(), "an error without what");
  if (!forests.ok()) return;
  CHECK(to_bytes(*forests) == bytes, "written otherwise than it was read");
  ResidualModel residual_model;
  KernelModel& known = residual_model.models[0].emplace();
  known.ops = {"mm"};
  known.forests = DeferredForests(*forests);
  FeatureRow feature_row;
  feature_row.model = static_cast<Model>(0);
  feature_row.op = known.ops.front();
  feature_row.analytic_us = 1;
  static_cast<void>(residual_model.cost(feature_row));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  data[0] == 'h' ? read_head(bytes) : read_forests(bytes);
  return 0;
}
