// Habitat (Yu, Gao, Golikov, Pekhimenko, "Habitat: A Runtime-Based Computational Performance Predictor for Deep Neural Network
// Training", USENIX ATC 2021): times that were measured on one GPU, the origin, carried over to another, the destination.
//
// Ops whose kernels are the same on all GPUs scale by waves (lab/dataset/other_gpus/wave_scaling.h). Those whose libraries choose
// other kernels on other GPUs go by an MLP for their kind: the origin's time x MLP(destination) / MLP(origin), each over the op's
// sizes and the GPU's memory, bandwidth, multiprocessors and FLOP rate. What differs: 3 layers of 64 in place of 8 of 1024, to keep
// the weights small; sizes enter by their logarithms; recurrent layers, which the tables do not have, count as products.
#pragma once

#include "lab/dataset/other_gpus/other_gpu_predictor.h"
#include "lab/learn/other_gpus/kind_networks.h"

namespace forerun::learn {

class Habitat : public OtherGpuPredictor {
 public:
  Habitat();
  [[nodiscard]] bool needs_origin() const override { return true; }
  Result<TrainingLog> train(const TimedWorkTable& table, const std::vector<std::string>& without,
                            const TrainOptions& options) override;
  std::vector<double> predict(std::span<const OriginWork> work, const Device& origin,
                              const Device& destination) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  KindNetworks nets_;
};

}  // namespace forerun::learn
