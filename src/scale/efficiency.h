// Efficiency: what share of a GPU's and a link's peak figures transformer training reaches, and what the host costs.
//
// Constants of the formulas in transformer_cost.h and network.h, fitted to measured iterations (lab/calibrate/efficiency_regression.h) and
// kept as data/scale/NAME.json with their source. `shapes` holds what the formulas miss at the very shapes that were
// measured; it fades within an octave of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "cost/collective/link_efficiency.h"

namespace forerun::scale {

// Where `forerun scale` looks for it, below the data folder.
inline constexpr const char* kMegatronEfficiency = kCollectiveEfficiencyFile;

// Measured over computed time at one shape.
struct ShapeCorrection {
  double tokens = 0;  // of a micro-batch
  double hidden = 0;
  double tensor = 0;  // GPUs that share a layer
  double layer = 1;
  double ends = 1;  // embedding and head
};

struct Efficiency {
  std::string name;
  std::string source;
  double gemm = 0.74;           // of the peak, by products with weights
  double attention = 0.5;       // of the peak, by the products of attention
  double misaligned = 0.35;     // of `gemm`, where an extent is odd, as GPT-2's vocabulary is
  double hopper = 0.8;          // times the shares above, on Hopper GPUs and later: measured at scale by others
  double score_bytes = 40;      // moved for each attention score, forward and backward; fused attention moves none
  double elementwise = 1.5;     // times the bytes that norms, dropout, residuals and activations must move
  double loss_bytes = 30;       // moved for each logit
  double update = 0.7;          // of the memory bandwidth, by the optimizer
  double host_layer_us = 800;   // to issue a layer, forward and backward
  double host_tensor_us = 100;  // more of them where the layer is shared
  double host_head_us = 800;    // the head and the loss
  double host_embedding_us = 200;
  double hop_us = 20;         // from a stage of a pipeline to the next, beside the bytes
  double zero3_share = 0.08;  // of the network, by ZeRO 3 as DeepSpeed has it
  double sharpness = 2.2;     // how hard the larger of host and GPU time rules: p of a p-norm
  bool fused_attention = true;
  CollectiveEfficiency links;  // what NCCL reaches of them
  std::vector<ShapeCorrection> shapes;
};

struct ShapeFactors {
  double layer = 1;
  double ends = 1;
};
ShapeFactors factors_at(const Efficiency& efficiency, double tokens, double hidden, double tensor);

Result<Efficiency> read_efficiency(const std::filesystem::path& path);
std::string to_json(const Efficiency& efficiency);

}  // namespace forerun::scale
