#include "predict/machine_calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "predict/cost_models.h"
#include "predict/predict.h"

namespace forerun {
namespace {

const std::string kFile = std::string(FORERUN_SOURCE_DIR) + "/tests/corpus/machine_file/h200.json";

TrainingRun a_run(const Device& device) {
  ModelRequest request;
  request.model = "resnet18";
  request.batch = 8;
  auto run = build_zoo_run(request, device);
  EXPECT_TRUE(run.ok());
  return std::move(*run);
}

TEST(MachineCalibration, CorrectsTheGpuThatWasReadAndNoOther) {
  auto plain = load_cost_models_for(kNoMachine);
  auto calibrated = load_cost_models_for(kFile);
  ASSERT_TRUE(plain.ok() && calibrated.ok());
  plain->residual_model.reset();  // of the GPU that was read
  calibrated->residual_model.reset();
  EXPECT_EQ(plain->machine, nullptr);
  ASSERT_NE(calibrated->machine, nullptr);
  EXPECT_EQ(usual_gpu(*calibrated), "NVIDIA H200");
  for (const char* name : {"h200", "t4"}) {
    const Device device = *plain->devices.find(name);
    const TrainingRun run = a_run(device);
    const auto before = gpu_costs(run, device, *plain);
    const auto after = gpu_costs(run, device, *calibrated);
    bool differ = false;
    for (size_t i = 0; i < before.size(); ++i) differ = differ || before[i].gpu != after[i].gpu;
    EXPECT_EQ(differ, std::string(name) == "h200") << name;
  }
}

// The trees rest on many more ops of their GPU than a few minutes read.
TEST(MachineCalibration, OpsOfTheGpuThatTreesWereGrownOnStayAsTheyAre) {
  const auto plain = load_cost_models_for(kNoMachine);
  const auto models = load_cost_models_for(kFile);
  ASSERT_TRUE(plain.ok() && models.ok());
  const Device device = *models->devices.find("h200");
  const TrainingRun run = a_run(device);
  const auto before = gpu_costs(run, device, *plain), after = gpu_costs(run, device, *models);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].gpu, after[i].gpu) << i;
}

TEST(MachineCalibration, AnOpThatWasReadTakesWhatWasRead) {
  auto models = load_cost_models_for(kFile);
  ASSERT_TRUE(models.ok());
  models->residual_model.reset();
  const Device device = *models->devices.find("h200");
  for (const OpReading& reading : models->machine->machine().ops) {
    TrainingRun run;
    run.graph = graph_of({&reading});
    run.setup.precision = reading.precision;
    const double us = static_cast<double>(gpu_costs(run, device, *models)[0].gpu.value) / 1e3;
    EXPECT_NEAR(us / reading.us, 1, 0.02) << reading.op;
  }
}

TEST(MachineCalibration, TheHostIsAsFastAsItsReadings) {
  const auto plain = load_cost_models_for(kNoMachine);
  auto models = load_cost_models_for(kFile);
  ASSERT_TRUE(plain.ok() && models.ok());
  const TrainingRun run = a_run(*models->devices.find("h200"));
  EXPECT_FALSE(host_is_calibrated(*plain, run));
  EXPECT_EQ(host_speed(*plain, run), 1);
  ASSERT_TRUE(host_is_calibrated(*models, run));
  Machine slow = models->machine->machine();
  for (HostCalibration& round : slow.host_cuda) {
    for (auto& [kind, us] : round.forward) us *= 2;
    for (auto& [kind, us] : round.backward) us *= 2;
  }
  const double fast = host_speed(*models, run);
  models->machine = std::make_shared<const MachineCalibration>(slow, "NVIDIA H200", "slow.json");
  EXPECT_LT(host_speed(*models, run), fast);
  slow.host_cuda.clear();  // the host's own tensors tell too
  models->machine = std::make_shared<const MachineCalibration>(slow, "NVIDIA H200", "cpu.json");
  EXPECT_TRUE(host_is_calibrated(*models, run));
  slow.host_cpu.clear();
  models->machine = std::make_shared<const MachineCalibration>(slow, "NVIDIA H200", "none.json");
  EXPECT_FALSE(host_is_calibrated(*models, run));
}

TEST(MachineCalibration, RangesAreWiderWithoutReadings) {
  const auto models = load_cost_models_for(kNoMachine);
  ASSERT_TRUE(models.ok());
  const CalibratedIntervals& kept = models->calibrated;
  ASSERT_TRUE(kept.calibrated_host && kept.default_host);
  EXPECT_GT(kept.default_host->high / kept.default_host->low, kept.calibrated_host->high / kept.calibrated_host->low);
  EXPECT_FALSE(kept.gpu_with(10).has_value());
  ASSERT_FALSE(kept.gpu.empty());
  EXPECT_TRUE(kept.gpu_with(1'000'000).has_value());
}

}  // namespace
}  // namespace forerun
