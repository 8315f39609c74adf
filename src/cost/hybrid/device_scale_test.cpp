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
  EXPECT_EQ(carried_as(Model::softmax, Unit::fp32, measured, wide), Carried::softmax);
  EXPECT_EQ(carried_as(Model::softmax, Unit::fp32, measured, same), std::nullopt);
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

TEST(DeviceScale, LoadsWhatItSaved) {
  DeviceScale scale;
  scale.power = {0.7, 0.1};
  scale.bandwidth_reach = 0.73;
  scale.product_share = 0.75;
  scale.carry[static_cast<size_t>(Carried::softmax)] = {std::log(0.25), 0.5};
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
  EXPECT_DOUBLE_EQ(carried(Carried::softmax), 10 * 0.25 * 2);
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
  EXPECT_LT(scale->bandwidth_reach, 1);
  EXPECT_GT(scale->product_share, 0.5);
  EXPECT_LT(scale->product_share, 1);
  for (const Carry& carry : scale->carry) {
    EXPECT_GT(carry.offset, -1.5);
    EXPECT_LT(carry.offset, 1.5);
  }
}

}  // namespace
}  // namespace forerun::hybrid
