// CommunicationModel: how much slower a gang runs where it is spread out, from what its GPUs say to each other.
//
// A step of data-parallel training computes and all-reduces its gradients (cost/collective: in the nodes, then between
// them). As in PyTorch's DistributedDataParallel they leave in buckets while the backward pass, two thirds of computing,
// goes on; the last bucket, 25 MiB, has nothing left to hide behind. So exposed = max(all - backward, last bucket).
// A stated duration is that of the gang on as few nodes as possible: what it computes follows from that. Left out: other
// traffic on the links, and pipeline, tensor and expert parallelism.
#pragma once

#include <cstdint>
#include <vector>

#include "base/quantity.h"
#include "device/device.h"

namespace forerun::cluster {

// What GPUs of a pool talk over.
struct PoolLinks {
  Link within;                  // GPUs of a node
  Link between;                 // a node and the network
  double oversubscription = 1;  // how much less of `between` there is across racks
  int32_t gpus_per_node = 8;
};

struct GangSpread {
  int32_t gpus = 1;
  int32_t nodes = 1;
  int32_t racks = 1;
};

// What a job says to itself; no gradients: not known.
struct GangTraffic {
  Bytes gradients;        // all-reduced in every step
  double iterations = 0;  // steps in all
  [[nodiscard]] bool known() const { return gradients.value > 0 && iterations > 0; }
};

class CommunicationModel {
 public:
  std::vector<PoolLinks> pools;  // by GPU type of the cluster

  // Seconds of a step that computes for `compute` seconds.
  [[nodiscard]] double step(double compute, Bytes gradients, uint32_t pool, GangSpread spread) const;
  // How long a step computes that takes so many seconds in all; 0 where it does nothing but communicate.
  [[nodiscard]] double compute_of(double step, Bytes gradients, uint32_t pool, GangSpread spread) const;
  // Speed where the gang is, against that on as few nodes as possible, on which it takes `step` seconds; at most 1.
  [[nodiscard]] double speed(double step, Bytes gradients, uint32_t pool, GangSpread spread) const;
  [[nodiscard]] GangSpread closest(uint32_t pool, int32_t gpus) const;

 private:
  [[nodiscard]] double all_reduce(Bytes gradients, uint32_t pool, GangSpread spread) const;
};

}  // namespace forerun::cluster
