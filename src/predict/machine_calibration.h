// MachineCalibration: a machine.json put to use: what its readings say of the GPU's ops and of the host's speed.
//
// The file's GPU part counts for that GPU alone; of another GPU that is asked for the host's speed is taken over, which the answer
// says. What the readings say of ops is worked out when the first answer for that GPU needs it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "cost/calibrated/gpu_correction.h"
#include "cost/calibrated/machine.h"
#include "cost/host/host.h"
#include "device/catalogue.h"

namespace forerun {

struct CostModels;

class MachineCalibration {
 public:
  // `gpu`: the name of the file's GPU in the catalogue; empty: the host alone was read.
  MachineCalibration(Machine machine, std::string gpu, std::string file);

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& gpu() const { return gpu_; }
  [[nodiscard]] bool reads(const Device& device) const { return !gpu_.empty() && device.name == gpu_; }
  // Whether its ops change the times of that GPU. Not of the GPU that the trees were grown on: they rest on fifty times as many ops, most of them
  // out of iterations, and files of an H200 made its predictions worse.
  [[nodiscard]] bool corrects(const Device& device, const CostModels& cost_models) const;
  // By how much the host is slower than the one that the constants are for; nothing where no reading tells. Readings on tensors of the
  // GPU count, and those on tensors of the host where there are none.
  [[nodiscard]] std::optional<double> host_slowness(const HostConstants& constants) const;
  // Whether the host was read with a GPU, which tells launches of kernels too.
  [[nodiscard]] bool host_with_gpu() const { return !host_.empty(); }

  // Of the default costs that `cost_models` give for the GPU that was read.
  [[nodiscard]] const GpuCorrection& correction(const CostModels& cost_models) const;
  // Works it out now, where answers will need it: that takes a second or two, which the first answer need not wait for.
  void prepare(const CostModels& cost_models) const;

  // What an answer for the device has to say of it.
  [[nodiscard]] std::string assumption(const Device& device, const CostModels& cost_models, bool host_scaled) const;

 private:
  Machine machine_;
  std::string gpu_;
  std::string file_;
  HostCalibration host_;
  HostCalibration cpu_;
  mutable std::once_flag once_;
  mutable std::optional<GpuCorrection> correction_;
};

inline constexpr const char* kNoMachine = "none";

// The file of the user's configuration folder, $XDG_CONFIG_HOME/forerun/machine.json; empty where there is none.
std::string configured_machine();

// Puts a machine.json to use in answers from these models. `word`: a file; "none"; empty: the configured one where there is one.
// A GPU that the catalogue does not know joins it, as far as the file describes it.
Status use_machine(const std::string& word, CostModels& cost_models);

// The GPU as its driver and the readings describe it: rates and bandwidth are the highest that ops reached, over the share of the
// peak that ops of that kind reach at best. An Error where they do not tell enough.
Result<Device> described_device(const Machine& machine, const std::string& where);

}  // namespace forerun
