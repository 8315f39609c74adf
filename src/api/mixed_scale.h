// "How fast does it train on GPUs of several kinds?": data-parallel replicas on nodes with different GPUs and networks.
//
// Every replica computes at the pace of its own GPU; all exchange gradients together, in rings that are as fast as the slowest
// node's connection; none begins a step before all have the result. So a step takes as long as the slowest kind's, and the
// others wait. Batches are even, as DistributedDataParallel has them, or dealt out by speed, so that all end at about the same
// time. A node holds GPUs of one kind. Tensor and pipeline parallelism are of one kind of GPU (api/scale.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/scale.h"

namespace forerun {

// One kind of GPU of a cluster: "h200=8".
struct GpuKind {
  std::string gpu;
  int64_t gpus = 0;
  std::string network;  // of its nodes; empty: none was named
};

// "h200=16,a100=8" with "8xndr" for all or "h200=8xndr,a100=25gbe" for each; nothing: none is named.
Result<std::vector<GpuKind>> parse_gpu_kinds(const std::string& gpus, const std::optional<std::string>& networks);

// Whether --gpu names kinds with numbers.
inline bool names_kinds(const std::string& gpu) { return gpu.find('=') != std::string::npos; }

// What each kind does in a step of the whole cluster.
struct KindStep {
  GpuKind kind;
  scale::Step step;   // as if all were of this kind, with the exchange of this cluster
  Nanoseconds waits;  // for slower kinds, in every step
  Bytes device_memory;
};

enum class BatchShare : uint8_t { even, by_speed };

struct MixedAnswer {
  ScaleAnswer whole;            // one step, that of the whole cluster: its parts are the slowest kind's
  std::vector<KindStep> kinds;  // in the order given
  BatchShare share = BatchShare::even;
};

// `question.gpu` and `question.network` name the kinds; `question.gpus` is not read.
Result<MixedAnswer> scale_out_mixed(const ScaleQuestion& question, BatchShare share, const CostModels& cost_models,
                                    const WorkControl& control = {});

}  // namespace forerun
