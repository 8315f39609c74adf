// Parameter servers: workers send gradients to servers that hold a shard each, and fetch the result back.
//
// Source: Li et al. (2014); in parts of 4 MB as BytePS (Jiang et al. 2020) does. mode=sync: the update waits for what all
// workers sent; mode=async: nobody waits, so that only the links' throughput can hold training back. Assumed: a server
// adds up and answers in no time; the update stays on the worker as traced; with servers=N the link of the busiest side
// decides.
#include "timeline/exchange_costs.h"
#include "whatif/network_parameters.h"

namespace forerun::whatif {

Status apply_parameter_server(EditableIteration& edited, const Parameters& parameters) {
  const std::string mode = parameters.text("mode", "sync");
  if (mode != "sync" && mode != "async") {
    return Error{"there is no mode '" + mode + "'", "parameter_server", "there are sync and async"};
  }
  const std::string colocated = parameters.text("colocated", "no");
  if (colocated != "no" && colocated != "yes") {
    return Error{"'" + colocated + "' is neither yes nor no", "parameter_server, colocated", "give one of them"};
  }
  const auto links = worker_links(edited, parameters);
  if (!links) return links.error().within("parameter_server");
  const auto servers = whole_number(parameters, "servers", links->topology.nodes);
  const auto slice = megabytes(parameters, "slice_mb", static_cast<double>(kServerPart.value) / 1e6);
  if (!servers) return servers.error().within("parameter_server");
  if (!slice) return slice.error().within("parameter_server");
  GradientExchange exchange =
      by_servers({.topology = links->topology, .servers = *servers, .colocated = colocated == "yes"});
  exchange.slice = *slice;
  exchange.awaited = mode == "sync";
  return exchange_gradients(edited, parameters, exchange, *links,
                            "parameter_server: " + mode + ", " + std::to_string(*servers) + " servers, ");
}

}  // namespace forerun::whatif
