// CommunicationModel: how much slower a gang runs where it is spread out, from what its GPUs say to each other.
//
// A step of data-parallel training computes and all-reduces its gradients as timeline/gradient_exchange.h has it: in PyTorch's
// buckets, which leave while the backward pass, two thirds of computing, goes on. Nothing is known of a job but how many
// bytes its gradients have, so the exchange's closed form for gradients that are ready at an even pace is asked. A stated
// duration is that of the gang on as few nodes as possible: what it computes follows from that. Left out: contention with
// computation, other traffic on the links, and pipeline, tensor and expert parallelism.
#pragma once

#include <cstdint>
#include <vector>

#include "base/quantity.h"
#include "cost/collective/link_efficiency.h"
#include "device/device.h"

namespace forerun {
struct EvenExchange;
}

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
  std::vector<PoolLinks> pools;     // by GPU type of the cluster; lines as their standards have them
  CollectiveEfficiency efficiency;  // what collectives reach of them

  // Seconds of a step that computes for `compute` seconds.
  [[nodiscard]] double step(double compute, Bytes gradients, uint32_t pool, GangSpread spread) const;
  // How long a step computes that takes so many seconds in all; 0 where it does nothing but communicate.
  [[nodiscard]] double compute_of(double step, Bytes gradients, uint32_t pool, GangSpread spread) const;
  // Speed where the gang is, against that on as few nodes as possible, on which it takes `step` seconds; at most 1.
  [[nodiscard]] double speed(double step, Bytes gradients, uint32_t pool, GangSpread spread) const;
  [[nodiscard]] GangSpread closest(uint32_t pool, int32_t gpus) const;

 private:
  [[nodiscard]] EvenExchange exchange(Bytes gradients, uint32_t pool, GangSpread spread) const;
};

}  // namespace forerun::cluster
