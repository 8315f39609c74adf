// Wave scaling, tiles and work of ops: what Habitat and NeuSight stand on, without their networks.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "device/catalogue.h"
#include "graph/graph_builder.h"
#include "lab/dataset/other_gpus/other_gpu_predictor.h"

namespace forerun::learn {
namespace {

Device device_of(const std::string& name) {
  const auto devices = load_devices(*data_dir() / "devices");
  return *devices->find(name);
}

TEST(WaveScaling, ToTheSameGpuChangesNothing) {
  const Device t4 = device_of("t4");
  for (const double blocks : {1.0, 40.0, 12345.0}) {
    EXPECT_DOUBLE_EQ(wave_scaled(17, elementwise_work(1 << 20, 3), {.blocks = blocks}, t4, t4), 17) << blocks;
  }
}

TEST(WaveScaling, ManyWavesOfAMemoryBoundKernelFollowBandwidth) {
  const Device origin = device_of("v100");
  Device destination = origin;
  destination.memory_bandwidth *= 2;
  const GpuWork work{.kind = WorkKind::elementwise, .rows = 1 << 28, .flops = 0, .bytes = 1e9};
  EXPECT_NEAR(wave_scaled(100, work, usual_launch(work), origin, destination), 50, 0.1);
  EXPECT_DOUBLE_EQ(memory_boundness(work, destination), 1);
}

TEST(WaveScaling, ManyWavesOfAComputeBoundKernelFollowClockAndMultiprocessors) {
  const Device origin = device_of("v100");
  Device destination = origin;
  destination.clock_mhz *= 2;
  destination.sm_count *= 2;
  const GpuWork work{.kind = WorkKind::elementwise, .rows = 1 << 28, .flops = 1e18, .bytes = 1e6};
  EXPECT_LT(memory_boundness(work, destination), 1e-3);
  EXPECT_NEAR(wave_scaled(100, work, usual_launch(work), origin, destination), 25, 0.5);
}

TEST(WaveScaling, LessThanAWaveFollowsTheClockAlone) {
  const Device origin = device_of("v100");
  Device destination = origin;
  destination.clock_mhz *= 2;
  destination.memory_bandwidth *= 4;
  EXPECT_DOUBLE_EQ(wave_scaled(10, elementwise_work(512, 2), {.blocks = 1}, origin, destination), 5);
}

TEST(WaveScaling, MultiprocessorsHoldWhatTheirGenerationHolds) {
  EXPECT_DOUBLE_EQ(wave_size(device_of("t4"), 128), 40 * 8);
  EXPECT_DOUBLE_EQ(wave_size(device_of("v100"), 128), 80 * 16);
  EXPECT_DOUBLE_EQ(wave_size(device_of("v100"), 4096), 80);
}

TEST(Tiles, AreReadFromNamesOfKernels) {
  EXPECT_EQ(tile_in_name("volta_sgemm_32x128_nn"), (Tile{.m = 128, .n = 32}));
  EXPECT_EQ(tile_in_name("ampere_sgemm_64x32_sliced1x4_tn"), (Tile{.m = 32, .n = 64}));
  for (const char* none : {"", "x", "12x", "vectorized_elementwise_kernel<4>", "sliced1x4", "9999999999999999999x64"}) {
    EXPECT_FALSE(tile_in_name(none).has_value()) << none;
  }
}

TEST(Tiles, TheNearestProfiledProductOfTheNearestArchitectureTellsThem) {
  const auto profiled = [](int64_t m, int capability, Tile tile) {
    return ProfiledTile{WorkKind::linear, {.m = m, .n = 64, .k = 64}, capability, tile};
  };
  const TileTable table({profiled(64, 80, {32, 32}), profiled(4096, 80, {128, 128}), profiled(4096, 70, {64, 64})}, 10);
  EXPECT_EQ(table.tile_for(product_work({.m = 3000, .n = 64, .k = 64}), device_of("h100")), (Tile{128, 128}));
  EXPECT_EQ(table.tile_for(product_work({.m = 100, .n = 64, .k = 64}), device_of("h100")), (Tile{32, 32}));
  EXPECT_EQ(table.tile_for(product_work({.m = 100, .n = 64, .k = 64}), device_of("v100")), (Tile{64, 64}));
  const auto again = TileTable::from_json(table.to_json());
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->to_json(), table.to_json());
}

TEST(Tiles, BrokenTablesAreRefused) {
  for (const char* text :
       {"{}", "[1]", "[[0,1,2,3]]", "[[9,1,2,3,4,80,64,64]]", "[[0,1,2,3,4,80,0,64]]", "[[\"a\"]]"}) {
    EXPECT_FALSE(TileTable::from_json(nlohmann::json::parse(text)).ok()) << text;
  }
}

TEST(Tiles, CoverTheWholeProduct) {
  const GpuWork work = product_work({.batch = 3, .m = 100, .n = 65, .k = 10});
  EXPECT_EQ(work.kind, WorkKind::batched_product);
  const TiledWork cut = tiled(work, {.m = 64, .n = 64});
  EXPECT_DOUBLE_EQ(cut.tiles, 3 * 2 * 2);
  EXPECT_GE(cut.tiles * cut.tile_flops, work.flops);
}

TEST(GpuWork, OfAGraphIsThatOfItsSizes) {
  GraphBuilder builder;
  const auto matrix = [&](Shape shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return builder.add_tensor(builder.add_storage(Bytes(4 * count)), DType::float32, shape);
  };
  const Attributes none;
  const std::vector<TensorId> inputs = {matrix({128, 32}), matrix({32, 64})};
  const std::vector<TensorId> outputs = {matrix({128, 64})};
  builder.add_op({.name = "aten.mm.default", .inputs = inputs, .outputs = outputs, .attributes = &none});
  const Graph graph = builder.finish();
  const auto work = gpu_work(graph, graph.ops()[0], Precision::fp32);
  ASSERT_EQ(work.size(), 1U);
  GpuWork expected = product_work({.m = 128, .n = 64, .k = 32});
  expected.unit = work[0].unit;  // matrix units, where a GPU has them for float32
  EXPECT_EQ(work[0], expected);
}

TEST(GpuWork, OfAReductionIsWhatItWalksOver) {
  GraphBuilder builder;
  const auto row = [&](Shape shape, int64_t count) {
    return builder.add_tensor(builder.add_storage(Bytes(4 * count)), DType::float32, shape);
  };
  const Attributes none;
  const std::vector<TensorId> inputs = {row({4096, 1024}, 4096 * 1024)};
  const std::vector<TensorId> outputs = {row({1024}, 1024)};
  builder.add_op({.name = "aten.sum.dim_IntList", .inputs = inputs, .outputs = outputs, .attributes = &none});
  const Graph graph = builder.finish();
  const auto work = gpu_work(graph, graph.ops()[0], Precision::fp32);
  ASSERT_EQ(work.size(), 1U);
  EXPECT_EQ(work[0].kind, WorkKind::elementwise);
  EXPECT_EQ(work[0].rows, 4096 * 1024);
}

TEST(OtherGpuTables, LeaveOutWhatIsNamedAndChooseEvenly) {
  TimedWorkTable table{.devices = {device_of("t4"), device_of("v100")}, .rows = {}, .source = ""};
  for (int i = 0; i < 10; ++i) {
    table.rows.push_back(
        {.gpu = static_cast<size_t>(i % 2), .op = "", .work = elementwise_work(i + 1, 2), .us = 1.0 + i});
  }
  const auto used = gpus_used(table, {table.devices[0].name});
  EXPECT_EQ(used, (std::vector<bool>{false, true}));
  const auto chosen = evenly_chosen(table, used, 3);
  ASSERT_EQ(chosen.size(), 3U);
  for (const TimedWork* row : chosen) EXPECT_EQ(row->gpu, 1U);
  EXPECT_LT(chosen[0]->us, chosen[1]->us);
}

}  // namespace
}  // namespace forerun::learn
