// Training iterations that were never run, labelled by Forerun: data to train predictors on before they see what was measured.
//
// Models are drawn (drawn_model.h) with batch, precision, optimizer and layout, and what fits on the GPU is predicted as
// `forerun predict` would: GPU and host time of each op, iteration time, memory. The cost models know the training families
// alone, and so do the labels. Hosts differ: each iteration is run on one drawn as fast or slow as measured ones were, and
// in half of the cases a calibration, as noisy as measured ones, tells how slow it is.
//
// The n-th example depends on the seed and n alone, whatever the number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/work_control.h"
#include "device/device.h"
#include "lab/dataset/dataset.h"
#include "predict/cost_models.h"

namespace forerun::simulation {

// What the groups of simulated examples begin with: "simulated/resnet".
inline constexpr const char* kSimulatedGroup = "simulated/";

struct SimulationOptions {
  int64_t count = 100'000;
  uint64_t seed = 1;
  int64_t traced =
      20'000;  // the first so many hold backward and update too, with the times of all ops; others forward ops
  unsigned threads = 0;  // 0: as many as the machine has
};

// An Error where work is stopped, or nearly nothing that is drawn fits on the GPU.
Result<learn::DataSet> simulate_iterations(const SimulationOptions& options, const Device& device,
                                           const CostModels& cost_models, const WorkControl& control = {});

// The n-th example alone, as a data set of its own; nothing where nothing that is drawn fits.
std::optional<learn::DataSet> simulated_example(const SimulationOptions& options, int64_t number, const Device& device,
                                                const CostModels& cost_models);

// Examples put together as simulate_iterations does, in order of their numbers.
class SimulatedData {
 public:
  // `analytic`: by cost models without trees.
  SimulatedData(std::string seed, std::string gpu, bool analytic)
      : seed_(std::move(seed)), gpu_(std::move(gpu)), analytic_(analytic) {}
  void add(const std::optional<learn::DataSet>& example);
  // An Error where nearly nothing fits on the GPU.
  Result<learn::DataSet> finish();

 private:
  std::string seed_;
  std::string gpu_;
  bool analytic_;
  int64_t missing_ = 0, count_ = 0;
  learn::DataSet data_;
};

// GPU time, host time and idle GPU time behind it of each op of a run as predicted on a host of this speed (1: the
// usual one), in microseconds: what learn::Targets holds by op.
struct OpTimes {
  std::vector<float> gpu_us, host_us, gap_us;
  double iteration_ms = 0;
  double gpu_busy_ms = 0;
};
OpTimes predicted_op_times(const TrainingRun& run, const Device& device, const CostModels& cost_models, double speed);

}  // namespace forerun::simulation
