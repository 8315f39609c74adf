// Data-parallel training as PyTorch's DistributedDataParallel does it: gradients in buckets, each all-reduced as soon as
// it is full, beside the backward pass; the update waits for all.
//
// Source: Li et al. (2020): buckets of 25 MiB in the order in which gradients are ready, the first one of 1 MiB. bsp
// (bulk-synchronous) sends everything in one message behind the backward pass; wfbp (Poseidon, Zhang et al. 2017) every
// gradient as soon as it is ready; mg_wfbp merges them (Shi et al. 2019). Assumed: computing is the same on every GPU.
#include "timeline/exchange_costs.h"
#include "whatif/network_parameters.h"

namespace forerun::whatif {
namespace {

Status exchange_by_all_reduce(EditableIteration& edited, const Parameters& parameters, Grouping grouping,
                              const std::string& name) {
  const auto links = worker_links(edited, parameters);
  if (!links) return links.error().within(name);
  const auto algorithm = algorithm_of(parameters);
  if (!algorithm) return algorithm.error().within(name);
  GradientExchange exchange =
      by_all_reduce({.algorithm = *algorithm, .topology = links->topology, .per_message = links->call});
  exchange.grouping = grouping;
  const Result<double> bucket = parameters.positive("bucket_mb", static_cast<double>(kBucket.value) / (1 << 20));
  if (!bucket) return bucket.error().within(name);
  exchange.bucket = Bytes(static_cast<int64_t>(std::min(*bucket, 1e6) * (1 << 20)));
  exchange.first_bucket = std::min(exchange.first_bucket, exchange.bucket);
  return exchange_gradients(edited, parameters, exchange, *links,
                            name + ": " + std::string(name_of(*algorithm)) + " all-reduce, ");
}

}  // namespace

Status apply_ddp(EditableIteration& edited, const Parameters& parameters) {
  return exchange_by_all_reduce(edited, parameters, Grouping::buckets, "ddp");
}

Status apply_bsp(EditableIteration& edited, const Parameters& parameters) {
  return exchange_by_all_reduce(edited, parameters, Grouping::whole, "bsp");
}

Status apply_wfbp(EditableIteration& edited, const Parameters& parameters) {
  return exchange_by_all_reduce(edited, parameters, Grouping::each, "wfbp");
}

Status apply_mg_wfbp(EditableIteration& edited, const Parameters& parameters) {
  return exchange_by_all_reduce(edited, parameters, Grouping::merged, "mg_wfbp");
}

}  // namespace forerun::whatif
