// P3: gradients in small slices, those that the next forward pass needs first before the others, and no barrier between
// iterations.
//
// Source: Jayarajan et al. (2019): slices of 50,000 parameters by parameter servers. Assumed: every parameter is updated
// just before its next use, in its share of the traced update's time.
#include "timeline/exchange_costs.h"
#include "whatif/network_parameters.h"

namespace forerun::whatif {

Status apply_p3(EditableIteration& edited, const Parameters& parameters) {
  const auto links = worker_links(edited, parameters);
  if (!links) return links.error().within("p3");
  const auto servers = whole_number(parameters, "servers", links->topology.nodes);
  const auto slice = megabytes(parameters, "slice_mb", 0.2);
  if (!servers) return servers.error().within("p3");
  if (!slice) return slice.error().within("p3");
  GradientExchange exchange = by_servers({.topology = links->topology, .servers = *servers});
  exchange.slice = *slice;
  exchange.prioritised = exchange.crosses = true;
  return exchange_gradients(edited, parameters, exchange, *links, "p3: slices by the next use, ");
}

}  // namespace forerun::whatif
