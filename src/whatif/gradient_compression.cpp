// Compressed gradients: what is sent shrinks, and kernels before and after the exchange do the compressing.
//
// Source: dgc, Deep Gradient Compression (Lin et al. 2018): of each bucket the largest `density` of the values with their
// places, 8 bytes each, gathered from all workers; choosing them reads and writes the gradient about ten times (momentum
// correction, sampling, masking). quantize (QSGD, Alistarh et al. 2017): `bits` for a value, all-gathered; two passes over
// the gradient to encode, and one over what came from every worker to decode. Assumed: memory traffic is all that these
// kernels cost; the accuracy of training is not asked about.
#include "timeline/exchange_costs.h"
#include "whatif/network_parameters.h"

namespace forerun::whatif {
namespace {

struct Compression {
  const char* name;
  double sent = 1;           // bytes of a worker's message, of the gradient's
  double passes_before = 0;  // over the gradient
  double passes_after = 0;
};

Status exchange_compressed(EditableIteration& edited, const Parameters& parameters, const Compression& form) {
  if (edited.timer() == nullptr) {
    return Error{"the cost model is not there", "data folder", "train it: forerun train hybrid"};
  }
  const auto links = worker_links(edited, parameters);
  if (!links) return links.error().within(form.name);
  GradientExchange exchange;
  exchange.lanes = {"network"};
  exchange.grouping = Grouping::buckets;
  const auto ranks = static_cast<double>(ranks_of(links->topology));
  exchange.parts = [topology = links->topology, call = links->call, form,
                    ranks](Bytes bytes) -> std::vector<ExchangePart> {
    if (ranks < 2) return {};
    // Every worker gathers what all others kept: n times a message is what a ring passes on.
    const Bytes gathered(static_cast<int64_t>(static_cast<double>(bytes.value) * form.sent * ranks));
    return {collective_part(call + all_gather(gathered, topology), topology)};
  };
  const OpTimer* timer = edited.timer();
  exchange.before = [timer, form](Bytes bytes) {
    return timer->memory_time(form.passes_before * static_cast<double>(bytes.value));
  };
  exchange.after = [timer, form](Bytes bytes) {
    return timer->memory_time(form.passes_after * static_cast<double>(bytes.value));
  };
  return exchange_gradients(edited, parameters, exchange, *links, std::string(form.name) + ": ");
}

}  // namespace

Status apply_dgc(EditableIteration& edited, const Parameters& parameters) {
  const Result<double> density = parameters.positive("density", 0.001);
  if (!density) return density.error().within("dgc");
  if (*density > 1) return Error{"more than everything cannot be kept", "density", "give a share, as density=0.001"};
  return exchange_compressed(edited, parameters, {"dgc", 2 * *density, 10, 1 + 2 * *density});
}

Status apply_quantize(EditableIteration& edited, const Parameters& parameters) {
  const Result<double> bits = parameters.positive("bits", 8);
  const Result<double> workers = parameters.positive("workers", 8);
  if (!bits) return bits.error().within("quantize");
  if (!workers) return workers.error().within("quantize");
  if (*bits > 32) return Error{"a value has 32 bits", "bits", "give fewer, as bits=8"};
  return exchange_compressed(edited, parameters, {"quantize", *bits / 32, 2, 1 + *workers * *bits / 32});
}

}  // namespace forerun::whatif
