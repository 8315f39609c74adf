#include "cost/analytic/analytic.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "graph/graph_builder.h"

namespace forerun {
namespace {

// A device and constants of round numbers: 10 multiprocessors, 1 TFLOPS fp32 and 10 of TF32, 1 TB/s, tiles of 64 x 64.
Device round_device() {
  Device device;
  device.name = "round";
  device.sm_count = 10;
  device.memory_bandwidth = 1e12;
  device.l2 = Bytes(1'000'000);
  device.peak.fp32 = 1e12;
  device.peak.fp64 = 1e11;
  device.peak.tf32_tensor = 10e12;
  device.peak.bf16_tensor = 20e12;
  return device;
}

AnalyticConstants round_constants() {
  AnalyticConstants constants;
  constants.tiles = {{64, 64, 1.0}};
  constants.k_step = 32;
  constants.split_k_least = 1 << 20;
  constants.unit_efficiency.fill(1.0);
  constants.kernel_floor = Nanoseconds(1000);
  constants.unaligned = 0.5;
  constants.step = Nanoseconds(5000);
  constants.persistent_step = Nanoseconds(2000);
  constants.persistent_width = 100;
  constants.foreach_chunk = 1000;
  constants.foreach_blocks = 10;
  constants.foreach_tensors = 4;
  return constants;
}

OpWork gemm_work(int64_t m, int64_t n, int64_t k, DType dtype = DType::float32) {
  OpWork work;
  work.cls = OpClass::gemm;
  work.on_gpu = true;
  work.tensor_core_eligible = true;
  work.compute_dtype = dtype;
  work.gemm_table[0] = {1, 1, m, n, k};
  work.gemm_count = 1;
  work.flops = Flops(work.gemms()[0].flops());
  return work;
}

OpWork memory_work(int64_t bytes) {
  OpWork work;
  work.cls = OpClass::elementwise;
  work.on_gpu = true;
  work.read = Bytes(bytes);
  return work;
}

TEST(AnalyticTest, WavesAreWhole) {
  const Device device = round_device();
  const AnalyticConstants constants = round_constants();
  // A tile of 64 x 64 x 32 at 0.1 TFLOPS per multiprocessor: 2 * 64 * 64 * 32 / 1e11 s.
  const double tile = 2.0 * 64 * 64 * 32 / 1e11;
  EXPECT_DOUBLE_EQ(product_seconds({1, 1, 64, 64, 32}, 1e12, device, constants), tile);
  EXPECT_DOUBLE_EQ(product_seconds({1, 1, 640, 64, 32}, 1e12, device, constants), tile);      // ten tiles, one wave
  EXPECT_DOUBLE_EQ(product_seconds({1, 1, 704, 64, 32}, 1e12, device, constants), 2 * tile);  // the eleventh
  EXPECT_DOUBLE_EQ(product_seconds({3, 1, 64, 64, 33}, 1e12, device, constants), 6 * tile);   // repeats, k padded
}

TEST(AnalyticTest, LongProductsAreSplitAlongK) {
  AnalyticConstants constants = round_constants();
  const GemmShape gemm{1, 1, 64, 64, 3200};
  const double whole = product_seconds(gemm, 1e12, round_device(), constants);
  constants.split_k_least = 32;
  EXPECT_DOUBLE_EQ(product_seconds(gemm, 1e12, round_device(), constants), whole / 10);
}

TEST(AnalyticTest, TheUnitFollowsPrecisionAndClass) {
  OpWork work = gemm_work(64, 64, 64);
  EXPECT_EQ(product_unit(work, Precision::fp32), Unit::fp32_matrix);
  EXPECT_EQ(product_unit(work, Precision::tf32), Unit::tf32_tensor);
  work.cls = OpClass::convolution;
  EXPECT_EQ(product_unit(work, Precision::fp32), Unit::tf32_tensor);
  work.compute_dtype = DType::bfloat16;
  EXPECT_EQ(product_unit(work, Precision::amp_bf16), Unit::bf16_tensor);
  work.compute_dtype = DType::float64;
  EXPECT_EQ(product_unit(work, Precision::tf32), Unit::fp64);
}

TEST(AnalyticTest, AnOpTakesTheLargerOfComputationAndMemoryPlusItsKernel) {
  const Device device = round_device();
  AnalyticConstants constants = round_constants();
  OpWork work = gemm_work(640, 640, 3200);
  // 100 tiles in 10 waves of 100 steps: 2.62144 us each step and wave.
  const int64_t compute = 2621440;
  OpCost cost = analytic_cost(work, "mm", device, {}, constants);
  EXPECT_EQ(cost.gpu, Nanoseconds(compute + 1000));
  EXPECT_EQ(cost.kernels, 1);
  EXPECT_EQ(cost.bound, Bound::compute);
  EXPECT_FALSE(cost.measured);
  work.read = Bytes(5'000'000'000);  // 5 ms
  cost = analytic_cost(work, "mm", device, {}, constants);
  EXPECT_EQ(cost.gpu, Nanoseconds(5'000'000 + 1000));
  EXPECT_EQ(cost.bound, Bound::memory);
  const KernelSetting tf32{.precision = Precision::tf32};
  work.read = Bytes(0);
  EXPECT_EQ(analytic_cost(work, "mm", device, tf32, constants).gpu, Nanoseconds(compute / 10 + 1000));
  work.aligned = false;
  EXPECT_EQ(analytic_cost(work, "mm", device, tf32, constants).gpu, Nanoseconds(compute / 5 + 1000));
}

TEST(AnalyticTest, CachedBytesAreFaster) {
  AnalyticConstants constants = round_constants();
  constants.cache_share = 0.5;
  constants.cache_speedup = 4;
  // 400 kB lie in the cache whole: 400 ns / 4. Of 1 MB half does: 500 + 125.
  EXPECT_EQ(analytic_cost(memory_work(400'000), "add", round_device(), {}, constants).gpu, Nanoseconds(100 + 1000));
  EXPECT_EQ(analytic_cost(memory_work(1'000'000), "add", round_device(), {}, constants).gpu, Nanoseconds(625 + 1000));
  EXPECT_EQ(analytic_cost(memory_work(400'000), "add", round_device(), {}, constants).bound, Bound::latency);
}

TEST(AnalyticTest, ViewsAndHostTensorsAreFree) {
  OpWork work = memory_work(1000);
  work.on_gpu = false;
  EXPECT_EQ(analytic_cost(work, "add_", round_device(), {}, round_constants()).kernels, 0);
  work.on_gpu = true;
  work.cls = OpClass::view;
  const OpCost cost = analytic_cost(work, "view", round_device(), {}, round_constants());
  EXPECT_EQ(cost.gpu, Nanoseconds(0));
  EXPECT_EQ(cost.bound, Bound::none);
}

TEST(AnalyticTest, ConstantsOfAnOpAndOfTheLayout) {
  AnalyticConstants constants = round_constants();
  ClassConstants slow;
  slow.memory = 0.5;
  slow.channels_last = 2;
  slow.kernels = 3;
  slow.fixed = Nanoseconds(500);
  constants.ops["add"] = slow;
  EXPECT_EQ(analytic_cost(memory_work(1'000'000), "add", round_device(), {}, constants).gpu, Nanoseconds(2000 + 3500));
  const KernelSetting channels_last{.channels_last = true};
  EXPECT_EQ(analytic_cost(memory_work(1'000'000), "add", round_device(), channels_last, constants).gpu,
            Nanoseconds(1000 + 3500));
  EXPECT_EQ(analytic_cost(memory_work(1'000'000), "mul", round_device(), {}, constants).gpu, Nanoseconds(1000 + 1000));
}

TEST(AnalyticTest, RecurrentStepsAndForeachKernels) {
  OpWork rnn = memory_work(0);
  rnn.cls = OpClass::rnn;
  rnn.steps = 10;
  rnn.step_width = 200;
  OpCost cost = analytic_cost(rnn, "_cudnn_rnn", round_device(), {}, round_constants());
  EXPECT_EQ(cost.gpu, Nanoseconds(50'000));
  EXPECT_EQ(cost.kernels, 21);
  rnn.step_width = 100;  // fits one persistent kernel
  cost = analytic_cost(rnn, "_cudnn_rnn", round_device(), {}, round_constants());
  EXPECT_EQ(cost.gpu, Nanoseconds(20'000));
  EXPECT_EQ(cost.kernels, 1);

  OpWork update = memory_work(0);
  update.cls = OpClass::optimizer;
  update.tensors = 9;
  EXPECT_EQ(analytic_cost(update, "_foreach_mul_", round_device(), {}, round_constants()).kernels, 3);  // 4 a kernel
  update.written = Bytes(4 * 45'000);  // 45 blocks, 10 a kernel
  EXPECT_EQ(analytic_cost(update, "_foreach_mul_", round_device(), {}, round_constants()).kernels, 5);
}

TEST(AnalyticTest, LooksAtTheLayoutOfTheOpItself) {
  AnalyticConstants constants = round_constants();
  ClassConstants twice;
  twice.channels_last = 2;
  constants.ops["relu"] = twice;
  GraphBuilder builder;
  const auto image = [&](const Shape& strides) {
    const StorageId storage = builder.add_storage(Bytes(4 * 250'000));
    return builder.add_tensor(storage, DType::float32, Shape{1, 10, 250, 100}, strides);
  };
  for (const Shape& strides : {Shape{250'000, 25'000, 100, 1}, Shape{250'000, 1, 1000, 10}}) {
    const std::vector<TensorId> in = {image(strides)};
    const std::vector<TensorId> out = {image(strides)};
    builder.add_op({"aten.relu.default", Phase::forward, "", in, out, nullptr, 0, ""});
  }
  const Graph graph = builder.finish();
  for (const bool channels_last : {false, true}) {  // as the run says: the strides say otherwise
    TrainingSetup setup;
    setup.channels_last = channels_last;
    const auto costs = analytic_costs(graph, round_device(), setup, constants);
    EXPECT_EQ(costs[0].gpu.value - 1000, 2 * (costs[1].gpu.value - 1000));
  }
}

TEST(AnalyticTest, ShippedConstantsLoadAndCostAGraph) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok()) << folder.error().message();
  const auto constants = load_analytic_constants(*folder / "cost/analytic.json");
  ASSERT_TRUE(constants.ok()) << constants.error().message();
  GraphBuilder builder;
  const auto tensor = [&](const Shape& shape, int64_t elements) {
    return builder.add_tensor(builder.add_storage(Bytes(4 * elements)), DType::float32, shape);
  };
  const TensorId a = tensor({512, 512}, 512 * 512);
  const TensorId c = tensor({512, 512}, 512 * 512);
  const std::vector<TensorId> in = {a, a};
  const std::vector<TensorId> out = {c};
  builder.add_op({"aten.mm.default", Phase::forward, "", in, out, nullptr, 0, ""});
  builder.add_op({"aten.detach.default", Phase::forward, "", out, out, nullptr, 0, ""});
  const auto costs = analytic_costs(builder.finish(), round_device(), {}, *constants);
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_GT(costs[0].gpu.value, 268'000);  // 2 * 512^3 at 1 TFLOPS
  EXPECT_LT(costs[0].gpu.value, 2 * 268'000);
  EXPECT_EQ(costs[1].kernels, 0);
}

}  // namespace
}  // namespace forerun
