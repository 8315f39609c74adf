#include "cluster/communication.h"

#include <algorithm>

#include "timeline/exchange_costs.h"
#include "timeline/gradient_exchange.h"

namespace forerun::cluster {
namespace {

constexpr double kBackwardShare = 2.0 / 3;  // of computing: twice the forward pass's products

double in_seconds(Nanoseconds time) { return static_cast<double>(time.value) * 1e-9; }

}  // namespace

EvenExchange CommunicationModel::exchange(Bytes gradients, uint32_t pool, GangSpread spread) const {
  const PoolLinks& links = pools[pool];
  Topology line{spread.nodes, (spread.gpus + spread.nodes - 1) / spread.nodes, links.within, links.between};
  if (spread.racks > 1) line.between.bandwidth /= links.oversubscription;
  return even_exchange(
      gradients, by_all_reduce({.topology = reached(line, efficiency), .per_message = call_of(line, efficiency)}));
}

double CommunicationModel::step(double compute, Bytes gradients, uint32_t pool, GangSpread spread) const {
  double exposed = 0;
  for (const EvenExchange::Term& term : exchange(gradients, pool, spread).terms) {
    exposed = std::max(exposed, in_seconds(term.tail) - term.hidden * kBackwardShare * compute);
  }
  return compute + exposed;
}

double CommunicationModel::compute_of(double step, Bytes gradients, uint32_t pool, GangSpread spread) const {
  // step() is the largest of functions that all grow with `compute`, so the smallest of their inverses is its inverse.
  double compute = step;
  for (const EvenExchange::Term& term : exchange(gradients, pool, spread).terms) {
    compute = std::min(compute, (step - in_seconds(term.tail)) / (1 - term.hidden * kBackwardShare));
  }
  return std::max(compute, 0.0);
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
