// OtherGpuPredictor: what predicts GPU times of ops on GPUs that nothing was measured on, after Habitat or NeuSight. Needs no
// LibTorch; the two do (lab/learn/other_gpus), and in a build without it make_other_gpu_predictor is an Error that says so.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "lab/dataset/other_gpus/gpu_work.h"
#include "lab/dataset/other_gpus/tiles.h"
#include "lab/dataset/other_gpus/wave_scaling.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

// A kernel that was timed on a GPU.
struct TimedWork {
  size_t gpu = 0;  // in the list of devices
  std::string op;  // "aten.gelu.default"
  GpuWork work;
  double us = 0;
  std::optional<Tile> tile;  // that its kernel's name tells
  KernelLaunch launch;       // blocks are 0 where they are not known
};

struct TimedWorkTable {
  std::vector<Device> devices;
  std::vector<TimedWork> rows;
  std::string source;  // a few words
};

// What a predictor is asked about: the work, and how long it takes on the origin, which Habitat starts from.
struct OriginWork {
  GpuWork work;
  double us = 0;
  KernelLaunch launch;
};

class OtherGpuPredictor {
 public:
  OtherGpuPredictor() = default;
  virtual ~OtherGpuPredictor() = default;
  OtherGpuPredictor(const OtherGpuPredictor&) = delete;
  OtherGpuPredictor& operator=(const OtherGpuPredictor&) = delete;

  // Whether it carries times over from an origin; else origins are not looked at.
  [[nodiscard]] virtual bool needs_origin() const = 0;
  // Learns from all rows but those of the GPUs named; the validation error is its mean relative error on them.
  virtual Result<TrainingLog> train(const TimedWorkTable& table, const std::vector<std::string>& without,
                                    const TrainOptions& options) = 0;
  // Microseconds on the destination.
  virtual std::vector<double> predict(std::span<const OriginWork> work, const Device& origin,
                                      const Device& destination) = 0;
  [[nodiscard]] virtual Status save(const std::string& folder) const = 0;
  virtual Status load(const std::string& folder) = 0;
};

inline constexpr std::string_view kOtherGpuPredictors[] = {"habitat", "neusight"};
Result<std::unique_ptr<OtherGpuPredictor>> make_other_gpu_predictor(std::string_view name);

// Which GPUs of a table are learned from: all but those named.
std::vector<bool> gpus_used(const TimedWorkTable& table, const std::vector<std::string>& without);
// Their rows, at most so many of a kind on a GPU, evenly chosen.
std::vector<const TimedWork*> evenly_chosen(const TimedWorkTable& table, const std::vector<bool>& used, size_t most);

// A GPU as NeuSight's tables were measured on it: without TF32.
Device without_tf32(Device device);

}  // namespace forerun::learn
