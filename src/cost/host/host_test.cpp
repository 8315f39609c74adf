#include "cost/host/host.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "cost/host/parameters_in_place.h"
#include "graph/graph_builder.h"

namespace forerun {
namespace {

HostConstants round_host_constants() {
  HostConstants constants;
  for (auto& phase : constants.op) phase.fill(Nanoseconds(1000));
  constants.of(Phase::backward, OpClass::view) = Nanoseconds(100);
  constants.host_op = Nanoseconds(50);
  constants.mark = Nanoseconds(1);
  constants.further_kernel = Nanoseconds(10);
  constants.foreach_tensor = Nanoseconds(7);
  constants.parameter = Nanoseconds(3);
  constants.iteration = Nanoseconds(5000);
  return constants;
}

Graph sample() {
  GraphBuilder builder;
  const Shape shape = {4};
  const auto tensor = [&](bool on_gpu) {
    return builder.add_tensor(builder.add_storage(Bytes(16), on_gpu), DType::float32, shape);
  };
  const std::vector<TensorId> x = {tensor(true)};
  const std::vector<TensorId> step = {tensor(false)};
  const std::vector<TensorId> lists = {tensor(true), tensor(true), tensor(true), tensor(true)};
  builder.add_op({"aten.detach.default", Phase::backward, "", x, x, nullptr, 0, "torch::autograd::AccumulateGrad"});
  builder.add_op({"aten.relu_.default", Phase::forward, "", x, x, nullptr, 0, ""});
  builder.add_op({"aten.add_.Tensor", Phase::update, "", step, step, nullptr, 0, ""});
  builder.add_op({"aten._foreach_add_.List", Phase::update, "", lists, {}, nullptr, 0, ""});
  builder.add_op({"profiler._record_function_exit._RecordFunction", Phase::update, "", {}, {}, nullptr, 0, ""});
  return builder.finish();
}

TEST(HostTest, ACalibrationScalesAllCosts) {
  HostConstants constants = round_host_constants();
  constants.scale = {.forward = {{"add", 4, 0.5}}, .backward = {{"view", 4, 0.25}}, .at_reference = 2};
  EXPECT_DOUBLE_EQ(host_speed(constants, {}), 1);
  EXPECT_DOUBLE_EQ(host_speed(constants, {.forward = {{"add", 8.0}}, .backward = {}}), 1);  // half of it says nothing
  EXPECT_DOUBLE_EQ(host_speed(constants, {.forward = {{"add", 4.0}}, .backward = {{"view", 4.0}}}), 0.5);
  EXPECT_DOUBLE_EQ(host_speed(constants, {.forward = {{"add", 16.0}}, .backward = {{"view", 4.0}}}), 0.25);
  // Each kind counts by its own weight; those that the scale does not ask for count nothing.
  EXPECT_DOUBLE_EQ(host_speed(constants, {.forward = {{"view", 9.0}, {"add", 4.0}}, .backward = {{"view", 64.0}}}),
                   0.25);
}

TEST(HostTest, CostsByClassKernelsAndTensors) {
  std::vector<OpCost> costs(5);
  costs[1].kernels = 3;
  const HostCosts host = host_costs(sample(), costs, round_host_constants());
  EXPECT_EQ(host.ops[0], Nanoseconds(100));
  EXPECT_EQ(host.ops[1], Nanoseconds(1000 + 2 * 10));
  EXPECT_EQ(host.ops[2], Nanoseconds(50));
  EXPECT_EQ(host.ops[3], Nanoseconds(1000 + 2 * 7));  // two lists of two
  EXPECT_EQ(host.ops[4], Nanoseconds(1));
  EXPECT_EQ(host.per_iteration, Nanoseconds(5000 + 3));
  EXPECT_EQ(host.total(), Nanoseconds(100 + 1020 + 50 + 1014 + 1 + 5003));
}

// One parameter's gradient is accumulated, by the first op.
TEST(HostTest, ParametersInPlaceTakeNoMoreAndNoLess) {
  const std::vector<OpCost> costs(5);
  const HostConstants constants = round_host_constants();
  const HostCosts host = host_costs(sample(), costs, constants);
  const HostCosts placed = parameters_in_place(sample(), host, constants);
  EXPECT_EQ(placed.total(), host.total());
  EXPECT_EQ(placed.per_iteration, constants.iteration);
  EXPECT_EQ(placed.ops[0], host.ops[0] + constants.parameter);
  EXPECT_FALSE(host_waits(sample(), {}));
  EXPECT_TRUE(host_waits(sample(), {.waits_for_loss = true}));
}

TEST(HostTest, CountsTimesConstantsAreTheTotal) {
  std::vector<OpCost> costs(5);
  std::vector<uint32_t> kernels(5, 0);
  costs[1].kernels = kernels[1] = 3;
  costs[3].kernels = kernels[3] = 2;
  const HostCounts counts = host_counts(sample(), kernels);
  EXPECT_EQ(counts.further_kernels, 3);
  EXPECT_EQ(counts.foreach_tensors, 2);
  EXPECT_EQ(host_cost(counts, round_host_constants()), host_costs(sample(), costs, round_host_constants()).total());
}

TEST(HostTest, SavedConstantsLoadAgain) {
  HostConstants constants = round_host_constants();
  constants.scale = {.forward = {{"add", 4, 0.3}}, .backward = {{"norm", 5, 0.2}}, .at_reference = 2};
  const std::string file = testing::TempDir() + "/host_test.json";
  ASSERT_TRUE(save_host_constants(constants, file).ok());
  const auto read = load_host_constants(file);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->op, constants.op);
  EXPECT_EQ(read->parameter, constants.parameter);
  ASSERT_EQ(read->scale.backward.size(), 1U);
  EXPECT_EQ(read->scale.backward[0].kind, "norm");
  EXPECT_DOUBLE_EQ(read->scale.backward[0].reference_us, 5);
  EXPECT_DOUBLE_EQ(read->scale.forward.at(0).weight, 0.3);
  EXPECT_DOUBLE_EQ(read->scale.at_reference, 2);
}

// Experts one by one: where each begins is read first.
TEST(HostTest, WaitsForGroupedProductsButInBfloat16) {
  GraphBuilder builder;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const std::vector<TensorId> rows = {builder.add_tensor(builder.add_storage(Bytes(64)), dtype, Shape{4, 4})};
    builder.add_op({"aten._grouped_mm.default", Phase::forward, "", rows, rows, nullptr, 0, ""});
  }
  const Graph graph = builder.finish();
  EXPECT_TRUE(reads_from_gpu(graph, graph.ops()[0]));
  EXPECT_FALSE(reads_from_gpu(graph, graph.ops()[1]));
}

TEST(HostTest, SpeedScalesEverything) {
  const std::vector<OpCost> costs(5);
  const HostCosts host = host_costs(sample(), costs, round_host_constants(), 2.0);
  EXPECT_EQ(host.ops[1], Nanoseconds(500));
  EXPECT_EQ(host.per_iteration, Nanoseconds(2502));
}

TEST(HostTest, ShippedConstantsLoad) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok()) << folder.error().message();
  const auto constants = load_host_constants(*folder / "host/default.json");
  ASSERT_TRUE(constants.ok()) << constants.error().message();
  EXPECT_LT(constants->of(Phase::forward, OpClass::view), constants->of(Phase::forward, OpClass::gemm));
}

}  // namespace
}  // namespace forerun
