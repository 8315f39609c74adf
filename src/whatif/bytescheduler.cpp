// ByteScheduler: slices of gradients all-reduced by the order of their next use, with no barrier between iterations.
//
// Source: Peng et al. (2019): parts of slice_mb with credit_mb of them under way, so that their latencies overlap.
// Assumed: every parameter is updated just before its next use, in its share of the traced update's time.
#include "timeline/exchange_costs.h"
#include "whatif/network_parameters.h"

namespace forerun::whatif {

Status apply_bytescheduler(EditableIteration& edited, const Parameters& parameters) {
  const auto links = worker_links(edited, parameters);
  const auto algorithm = algorithm_of(parameters);
  constexpr double kPart = static_cast<double>(kServerPart.value) / 1e6;
  const auto slice = megabytes(parameters, "slice_mb", kPart), credit = megabytes(parameters, "credit_mb", 4 * kPart);
  if (!links) return links.error().within("bytescheduler");
  if (!algorithm) return algorithm.error().within("bytescheduler");
  if (!slice) return slice.error().within("bytescheduler");
  if (!credit) return credit.error().within("bytescheduler");
  const int64_t in_flight = std::max<int64_t>(1, credit->value / std::max<int64_t>(1, slice->value));
  GradientExchange exchange = by_all_reduce(
      {.algorithm = *algorithm, .topology = links->topology, .per_message = links->call, .in_flight = in_flight});
  exchange.grouping = Grouping::each;
  exchange.slice = *slice;
  exchange.prioritised = exchange.crosses = true;
  return exchange_gradients(edited, parameters, exchange, *links, "bytescheduler: slices by the next use, ");
}

}  // namespace forerun::whatif
