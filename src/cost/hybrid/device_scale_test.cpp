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
}

TEST(DeviceScale, LoadsWhatItSaved) {
  DeviceScale scale;
  scale.power = {0.7, 0.1};
  scale.carry[static_cast<size_t>(Carried::softmax)] = {std::log(0.25), 0.5};
  const std::string file = testing::TempDir() + "/device_scale_test.json";
  ASSERT_TRUE(save_device_scale(scale, file).ok());
  const auto read = load_device_scale(file);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_DOUBLE_EQ(read->power.idle, 0.1);
  EXPECT_DOUBLE_EQ(carried_us(10, 4, Carried::softmax, *read), 10 * 0.25 * 2);
  EXPECT_DOUBLE_EQ(carried_us(10, 4, Carried::product, *read), 40);
  EXPECT_DOUBLE_EQ(carried_us(10, 4, std::nullopt, *read), 40);
}

TEST(DeviceScale, TheOneThatComesAlongIsWithinReason) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const auto scale = load_device_scale(*folder / "cost" / "devices.json");
  ASSERT_TRUE(scale.ok()) << scale.error().message();
  EXPECT_LE(scale->power.enough, 1);
  for (const Carry& carry : scale->carry) {
    EXPECT_GT(carry.offset, -1.5);
    EXPECT_LT(carry.offset, 1.5);
  }
}

}  // namespace
}  // namespace forerun::hybrid
