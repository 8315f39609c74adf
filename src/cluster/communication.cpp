#include "cluster/communication.h"

#include <algorithm>

#include "cost/collective/collective.h"

namespace forerun::cluster {
namespace {

constexpr double kBackwardShare = 2.0 / 3;         // of computing: twice the forward pass's products
constexpr Bytes kBucket{int64_t{25} * (1 << 20)};  // DistributedDataParallel's bucket_cap_mb

}  // namespace

double CommunicationModel::all_reduce(Bytes gradients, uint32_t pool, GangSpread spread) const {
  const PoolLinks& links = pools[pool];
  Topology topology{spread.nodes, (spread.gpus + spread.nodes - 1) / spread.nodes, links.within, links.between};
  if (spread.racks > 1) topology.between.bandwidth /= links.oversubscription;
  return static_cast<double>(hierarchical_all_reduce(gradients, topology).value) * 1e-9;
}

double CommunicationModel::step(double compute, Bytes gradients, uint32_t pool, GangSpread spread) const {
  const double all = all_reduce(gradients, pool, spread);
  const double last = all_reduce(std::min(gradients, kBucket), pool, spread);
  return compute + std::max(all - kBackwardShare * compute, last);
}

double CommunicationModel::compute_of(double step, Bytes gradients, uint32_t pool, GangSpread spread) const {
  // step() grows with `compute` on both sides of its max, so the smaller of the two inverses is the inverse.
  const double all = all_reduce(gradients, pool, spread);
  const double last = all_reduce(std::min(gradients, kBucket), pool, spread);
  return std::max(std::min((step - all) / (1 - kBackwardShare), step - last), 0.0);
}

double CommunicationModel::speed(double whole, Bytes gradients, uint32_t pool, GangSpread spread) const {
  const GangSpread best = closest(pool, spread.gpus);
  const double compute = compute_of(whole, gradients, pool, best);
  const double here = step(compute, gradients, pool, spread);
  return here > 0 ? std::min(step(compute, gradients, pool, best) / here, 1.0) : 1;
}

GangSpread CommunicationModel::closest(uint32_t pool, int32_t gpus) const {
  const int32_t per_node = std::max(pools[pool].gpus_per_node, 1);
  return {gpus, (gpus + per_node - 1) / per_node, 1};
}

}  // namespace forerun::cluster
