// GPUs as Slurm writes them in lists of trackable resources: "cpu=8,gres/gpu:a100=2,gres/gpu=2" or "gpu:a100:2".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/machine.h"

namespace forerun::cluster {

struct SlurmGpus {
  int64_t count = 0;
  std::string type;  // empty: any
};

// Nothing where a number is broken; a count of 0 where there are none.
std::optional<SlurmGpus> parse_slurm_gpus(std::string_view text);

// Whether a cluster has that type; one whose type is not stated has any.
bool has_slurm_type(const Cluster* cluster, const SlurmGpus& gpus);

}  // namespace forerun::cluster
