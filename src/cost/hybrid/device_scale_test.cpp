#include "cost/hybrid/device_scale.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/data_dir.h"

namespace forerun::hybrid {
namespace {

Device board(const std::string& name, const std::string& architecture, double watts, double tflops, double lanes) {
  Device device;
  device.name = name;
  device.architecture = architecture;
  device.power_w = watts;
  device.peak.fp32 = tflops * 1e12;
  device.clock_mhz = 1000;
  device.sm_count = static_cast<int64_t>(std::llround(tflops * 1e12 / (2e9 * lanes)));
  return device;
}

TEST(DeviceScale, LowPowerBoardsDoNotSustainTheirRates) {
  DeviceCatalogue catalogue;
  const Device large = board("large", "new", 400, 20, 128);
  const Device small = board("small", "new", 50, 10, 128);
  ASSERT_TRUE(catalogue.add(large).ok() && catalogue.add(small).ok());
  ASSERT_TRUE(catalogue.add(board("other", "old", 10, 10, 64)).ok());
  DeviceScale scale;
  scale.set_boards(catalogue);
  EXPECT_DOUBLE_EQ(scale.sustained(small), 1);  // no power figure: nothing is known
  scale.power = {.enough = 0.5, .idle = 0};
  EXPECT_DOUBLE_EQ(scale.sustained(large), 1);
  EXPECT_DOUBLE_EQ(scale.sustained(small), 0.5);  // 5 W a TFLOPS, where the large one has 20
  EXPECT_DOUBLE_EQ(scale.sustaining(small).peak.fp32, 5e12);
  scale.power.idle = 0.125;
  EXPECT_DOUBLE_EQ(scale.sustained(small), 1.0 / 3);
  scale.power.idle = 0.24;
  EXPECT_DOUBLE_EQ(scale.sustained(small), 0.2);                   // but no less
  EXPECT_DOUBLE_EQ(scale.sustained(*catalogue.find("other")), 1);  // the most of its own architecture
  EXPECT_DOUBLE_EQ(scale.sustained(board("unknown", "", 0, 10, 64)), 1);
}

TEST(DeviceScale, WhatCarriesOverDependsOnUnitAndArchitecture) {
  Device measured = board("measured", "new", 400, 67, 128);
  measured.peak.tf32_tensor = 4e14;
  const Device wide = board("wide", "newer", 400, 30, 128);
  const Device narrow = board("narrow", "old", 400, 14, 64);
  const Device same = board("same", "new", 400, 14, 64);
  EXPECT_EQ(carried_as(Model::gemm, Unit::fp32_matrix, measured, narrow), Carried::product);
  EXPECT_EQ(carried_as(Model::gemm, Unit::fp32_matrix, measured, wide), std::nullopt);
  EXPECT_EQ(carried_as(Model::weight_gradient, Unit::tf32_tensor, measured, wide), Carried::gradient);
  EXPECT_EQ(carried_as(Model::convolution, Unit::tf32_tensor, measured, measured), std::nullopt);
  EXPECT_EQ(carried_as(Model::softmax, Unit::fp32, measured, wide), std::nullopt);
  EXPECT_EQ(streams_as(Model::softmax, measured, wide), Streaming::softmax);
  EXPECT_EQ(streams_as(Model::softmax, measured, same), Streaming::plain);
  EXPECT_EQ(streams_as(Model::pooling, measured, wide), Streaming::plain);
  EXPECT_EQ(streams_as(Model::attention, measured, wide), std::nullopt);
  EXPECT_EQ(carried_as(Model::rnn, Unit::fp32, measured, narrow), std::nullopt);
  Device graphics = board("graphics", "other", 400, 30, 128);
  graphics.compute_capability = 89;
  graphics.peak.tf32_tensor = 6e13;
  EXPECT_EQ(carried_as(Model::gemm, Unit::fp32_matrix, measured, graphics), Carried::graphics_product);
  EXPECT_EQ(carried_as(Model::gemm, Unit::tf32_tensor, measured, graphics), Carried::graphics_tensor);
  EXPECT_EQ(carried_as(Model::convolution, Unit::tf32_tensor, measured, graphics), Carried::graphics_tensor);
}

TEST(DeviceScale, ReachIsBoundWhereCheckBitsLieBesideTheData) {
  Device device = board("any", "new", 400, 67, 128);
  device.compute_capability = 80;
  device.board_memory = Bytes(16'000);
  device.memory = Bytes(15'800);
  EXPECT_FALSE(is_reach_bound(device));
  device.memory = Bytes(15'000);
  EXPECT_TRUE(is_reach_bound(device));
  device.memory = device.board_memory;
  device.compute_capability = 60;  // Pascal
  EXPECT_TRUE(is_reach_bound(device));
  device.compute_capability = 0;  // no CUDA device
  EXPECT_FALSE(is_reach_bound(device));
}

TEST(DeviceScale, NoKernelBeatsTheBandwidthThatIsReached) {
  DeviceScale scale;
  const CarriedRow row{.analytic_us = 10, .correction = 1.1, .kind = std::nullopt, .memory_us = 9};
  EXPECT_DOUBLE_EQ(carried_us(row, scale), 11);
  scale.bandwidth_reach = 0.75;
  EXPECT_DOUBLE_EQ(carried_us(row, scale), 12);
  scale.bandwidth_reach = 0.9;
  EXPECT_DOUBLE_EQ(carried_us(row, scale), 11);
}

TEST(DeviceScale, ProductsAreCorrectedAtTheRateThatIsSustained) {
  DeviceScale scale;
  const MeasuredRow row{.us = 10, .analytic_us = 8, .compute_us = 9};
  EXPECT_DOUBLE_EQ(correction_of(row, Model::gemm, Unit::fp32_matrix, scale), 10.0 / 8);
  scale.product_share = 0.75;
  EXPECT_DOUBLE_EQ(correction_of(row, Model::gemm, Unit::fp32_matrix, scale), 12.0 / 8);
  EXPECT_DOUBLE_EQ(correction_of(row, Model::gemm, Unit::bf16_tensor, scale), 10.0 / 8);
  EXPECT_DOUBLE_EQ(correction_of(row, Model::softmax, Unit::fp32, scale), 10.0 / 8);
}

// A scale and two boards that differ in what a test makes differ.
struct StreamingCase {
  DeviceScale scale;
  Device measured = board("measured", "new", 400, 67, 128);
  Device there = board("there", "new", 400, 67, 128);
  StreamingCase() { scale.open_reach = 0.8; }

  // The row took `us` on the measured GPU, which moves its bytes in `memory_us` at the full bandwidth; the other has `bandwidth` of it.
  [[nodiscard]] double carried(double us, double memory_us, double bandwidth = 1) const {
    const MeasuredRow row{.us = us, .analytic_us = us, .compute_us = 0, .memory_us = memory_us, .kernels = 1};
    CarriedRow carried{.analytic_us = us};
    carried.streamed = streamed_row(Model::elementwise, row, memory_us / bandwidth, measured, there, scale);
    return carried_us(carried, scale);
  }
};

TEST(DeviceScale, AStreamingKernelOnATwinTakesTheTimeThatWasMeasured) {
  const StreamingCase twin;
  EXPECT_NEAR(twin.carried(100, 10), 100, 1e-9);  // hardly any of it is memory
  EXPECT_NEAR(twin.carried(100, 60), 100, 1e-9);  // both
  EXPECT_NEAR(twin.carried(100, 80), 100, 0.3);   // at the bandwidth that is reached
  EXPECT_NEAR(twin.carried(100, 95), 100, 0.3);   // and beyond it
  EXPECT_NEAR(twin.carried(1, 0.01), 1, 1e-9);
}

TEST(DeviceScale, BandwidthCountsForWhatItBounds) {
  const StreamingCase narrow;
  EXPECT_NEAR(narrow.carried(100, 80, 0.5), 200, 1);  // twice as long
  EXPECT_LT(narrow.carried(100, 20, 0.5), 102);       // a quarter of the bandwidth, then half
  double before = 0;
  for (const double bandwidth : {2.0, 1.0, 0.7, 0.5, 0.3, 0.1}) {
    const double us = narrow.carried(100, 50, bandwidth);
    EXPECT_GT(us, before) << bandwidth;  // never faster with less
    before = us;
  }
}

TEST(DeviceScale, MultiprocessorsCountForTheRest) {
  StreamingCase slow;
  slow.there.clock_mhz /= 2;
  EXPECT_NEAR(slow.carried(100, 1), 200, 2);
  EXPECT_NEAR(slow.carried(1, 0.01), 1, 1e-9);  // a kernel that does next to nothing takes no longer
  EXPECT_LT(slow.carried(100, 80), 105);        // memory hides most of it
  slow.there.clock_mhz *= 4;
  EXPECT_LT(slow.carried(100, 1), 60);
}

TEST(DeviceScale, LoadsWhatItSaved) {
  DeviceScale scale;
  scale.power = {0.7, 0.1};
  scale.bandwidth_reach = 0.73;
  scale.product_share = 0.75;
  scale.open_reach = 0.9;
  scale.streaming[static_cast<size_t>(Streaming::softmax)] = {0.75, 1.25};
  scale.carry[static_cast<size_t>(Carried::gradient)] = {std::log(0.25), 0.5};
  const std::string file = testing::TempDir() + "/device_scale_test.json";
  ASSERT_TRUE(save_device_scale(scale, file).ok());
  const auto read = load_device_scale(file);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_DOUBLE_EQ(read->power.idle, 0.1);
  EXPECT_DOUBLE_EQ(read->bandwidth_reach, 0.73);
  EXPECT_DOUBLE_EQ(read->product_share, 0.75);
  const auto carried = [&](std::optional<Carried> kind) {
    return carried_us({.analytic_us = 10, .correction = 4, .kind = kind}, *read);
  };
  EXPECT_DOUBLE_EQ(read->open_reach, 0.9);
  EXPECT_DOUBLE_EQ(read->streaming[static_cast<size_t>(Streaming::softmax)].memory, 1.25);
  EXPECT_DOUBLE_EQ(carried(Carried::gradient), 10 * 0.25 * 2);
  EXPECT_DOUBLE_EQ(carried(Carried::product), 40);
  EXPECT_DOUBLE_EQ(carried(std::nullopt), 40);
}

TEST(DeviceScale, TheOneThatComesAlongIsWithinReason) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const auto scale = load_device_scale(*folder / "cost" / "devices.json");
  ASSERT_TRUE(scale.ok()) << scale.error().message();
  EXPECT_LE(scale->power.enough, 1);
  EXPECT_GT(scale->bandwidth_reach, 0.5);
  EXPECT_LT(scale->bandwidth_reach, scale->open_reach);
  EXPECT_LT(scale->open_reach, 1);
  EXPECT_GT(scale->product_share, 0.5);
  EXPECT_LT(scale->product_share, 1);
  for (const Carry& carry : scale->carry) {
    EXPECT_GT(carry.offset, -1.5);
    EXPECT_LT(carry.offset, 1.5);
  }
}

}  // namespace
}  // namespace forerun::hybrid
