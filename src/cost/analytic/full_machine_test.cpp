#include "cost/analytic/full_machine.h"

#include <gtest/gtest.h>

#include <vector>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

// One product of 2 x 1024^3 FLOPs in bfloat16.
Graph product_graph() {
  GraphBuilder builder;
  const auto tensor = [&] {
    return builder.add_tensor(builder.add_storage(Bytes(2 << 20)), DType::bfloat16, Shape{1024, 1024});
  };
  const TensorId a = tensor();
  const std::vector<TensorId> in = {a, a}, out = {tensor()};
  builder.add_op({"aten.mm.default", Phase::forward, "", in, out, nullptr, 0, ""});
  return builder.finish();
}

// Of a GPU with 1000 TFLOPS, that so much of them are used.
double slowdown_at(double share, int capability, Precision precision) {
  Device device;
  device.compute_capability = capability;
  device.peak.bf16_tensor = 1e15;
  OpCost cost;
  cost.gpu = Nanoseconds(static_cast<int64_t>(2.0 * 1024 * 1024 * 1024 / 1e15 * 1e9 / share));
  return full_machine_slowdown(product_graph(), std::vector<OpCost>{cost}, device, precision);
}

TEST(FullMachine, SlowsHopperDownWhereProductsKeepItBusy) {
  EXPECT_DOUBLE_EQ(slowdown_at(0.2, kHopper, Precision::amp_bf16), 1);
  EXPECT_NEAR(slowdown_at(0.7, kHopper, Precision::amp_bf16), 1 / kHopperPace, 1e-9);
  const double between = slowdown_at(0.38, kHopper, Precision::bf16);
  EXPECT_GT(between, 1.05);
  EXPECT_LT(between, 1 / kHopperPace);
}

TEST(FullMachine, LeavesOthersAndFullPrecisionAlone) {
  EXPECT_DOUBLE_EQ(slowdown_at(0.7, 80, Precision::amp_bf16), 1);
  EXPECT_DOUBLE_EQ(slowdown_at(0.7, kHopper, Precision::tf32), 1);
}

}  // namespace
}  // namespace forerun
