// Habitat and NeuSight on GPUs and times that are made up, so that what they should find is known.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "lab/learn/other_gpus/habitat.h"
#include "lab/learn/other_gpus/neusight.h"

namespace forerun::learn {
namespace {

Device made_up_gpu(const std::string& name, double rate, double bandwidth, int64_t sms) {
  Device device;
  device.name = name;
  device.vendor = "NVIDIA";
  device.peak.fp32 = rate;
  device.memory_bandwidth = bandwidth;
  device.sm_count = sms;
  device.clock_mhz = 1400;
  device.compute_capability = 70;
  device.l2 = Bytes(int64_t{6} << 20);
  device.board_memory = Bytes(int64_t{16} << 30);
  return device;
}

// Every op reaches a third of the roofline.
double made_up_us(const GpuWork& work, const Device& device) {
  return 3e6 * std::max(work.flops / device.peak.fp32, work.bytes / device.memory_bandwidth);
}

TimedWorkTable made_up_table() {
  TimedWorkTable table;
  table.devices = {made_up_gpu("a", 8e12, 3e11, 40), made_up_gpu("b", 14e12, 9e11, 80),
                   made_up_gpu("c", 20e12, 15e11, 108), made_up_gpu("left out", 11e12, 6e11, 60)};
  std::mt19937 random(1);
  const auto extent = [&](int64_t most) { return 64 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int i = 0; i < 400; ++i) {
    const GpuWork works[] = {product_work({.m = extent(4000), .n = extent(4000), .k = extent(4000)}),
                             elementwise_work(extent(4000) * extent(4000), 2)};
    for (size_t gpu = 0; gpu < table.devices.size(); ++gpu) {
      for (const GpuWork& work : works) {
        table.rows.push_back({.gpu = gpu, .op = "op", .work = work, .us = made_up_us(work, table.devices[gpu])});
      }
    }
  }
  return table;
}

std::vector<OriginWork> asked_of(const TimedWorkTable& table, size_t gpu) {
  std::vector<OriginWork> work;
  for (const TimedWork& row : table.rows) {
    if (row.gpu == gpu) work.push_back({.work = row.work, .us = row.us, .launch = {}});
  }
  return work;
}

double error_of(const std::vector<double>& us, const std::vector<OriginWork>& work, const Device& device) {
  double sum = 0;
  for (size_t i = 0; i < us.size(); ++i) sum += std::abs(us[i] / made_up_us(work[i].work, device) - 1);
  return sum / static_cast<double>(us.size());
}

TEST(NeuSight, FindsAUtilisationThatHoldsOnAGpuLeftOut) {
  const TimedWorkTable table = made_up_table();
  NeuSight neusight;
  const auto log = neusight.train(table, {"left out"}, {.epochs = 30});
  ASSERT_TRUE(log.ok()) << log.error().message();
  const auto work = asked_of(table, 0);
  const Device& there = table.devices[3];
  const std::vector<double> us = neusight.predict(work, there, there);
  EXPECT_LT(error_of(us, work, there), 0.15);
  for (size_t i = 0; i < us.size(); ++i) {
    EXPECT_GE(us[i], 0.999 * made_up_us(work[i].work, there) / 3) << "faster than the roofline";
  }
  const std::string folder = testing::TempDir() + "/neusight_test";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(neusight.save(folder).ok());
  NeuSight again;
  ASSERT_TRUE(again.load(folder).ok());
  EXPECT_EQ(again.predict(work, there, there), us);
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(NeuSight().load(folder).ok());
}

TEST(Habitat, CarriesTimesOverAndKeepsThemOnTheSameGpu) {
  const TimedWorkTable table = made_up_table();
  Habitat habitat;
  const auto log = habitat.train(table, {}, {.epochs = 30});
  ASSERT_TRUE(log.ok()) << log.error().message();
  const auto work = asked_of(table, 0);
  const std::vector<double> same = habitat.predict(work, table.devices[0], table.devices[0]);
  for (size_t i = 0; i < same.size(); ++i) EXPECT_NEAR(same[i] / work[i].us, 1, 1e-5);
  EXPECT_LT(error_of(habitat.predict(work, table.devices[0], table.devices[1]), work, table.devices[1]), 0.15);
  EXPECT_FALSE(habitat.train(table, {"a", "b", "c", "left out"}, {.epochs = 1}).ok());
}

TEST(OtherGpuPredictors, AreMadeByName) {
  for (const std::string_view name : kOtherGpuPredictors) EXPECT_TRUE(make_other_gpu_predictor(name).ok()) << name;
  const auto unknown = make_other_gpu_predictor("habitad");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("habitat"), std::string::npos);
}

}  // namespace
}  // namespace forerun::learn
