// NeuSight (Lee, Phanishayee, Mahajan, "Forecasting GPU Performance for Deep Learning Training and Inference", ASPLOS 2025), from
// its description: an op is cut into tiles, tiles run in waves over the multiprocessors, and a small MLP for each kind of op
// tells which share of what the GPU can do is reached. The answer never beats the roofline.
//
//   time = roofline / utilisation,   utilisation = sigmoid(a) - sigmoid(b) / waves
// a and b are the MLP's, over logarithms: a tile's FLOPs and bytes beside a multiprocessor's share of FLOP rate and bandwidth, the
// bytes of a wave and of the op beside the L2 cache, waves, how full the last wave is, and the op's intensity beside the ridge.
// What differs, by what did better on GPUs left out among those of training: the roofline is that of the whole op, since a
// tile's operands come mostly from the cache; 3 layers of 32 in place of 8 of 512; three more columns. Convolutions are products
// whose roofline allows for Winograd's algorithm. What NeuSight leaves out is left out: the host, and gaps between kernels.
#pragma once

#include "lab/dataset/other_gpus/other_gpu_predictor.h"
#include "lab/dataset/other_gpus/tiles.h"
#include "lab/learn/other_gpus/kind_networks.h"

namespace forerun::learn {

class NeuSight : public OtherGpuPredictor {
 public:
  NeuSight();
  [[nodiscard]] bool needs_origin() const override { return false; }
  Result<TrainingLog> train(const TimedWorkTable& table, const std::vector<std::string>& without,
                            const TrainOptions& options) override;
  std::vector<double> predict(std::span<const OriginWork> work, const Device& origin,
                              const Device& destination) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  TileTable tiles_;
  KindNetworks nets_;
};

}  // namespace forerun::learn
