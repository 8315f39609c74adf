#include "scale/fair_share.h"

#include <algorithm>
#include <limits>

namespace forerun::scale {

std::vector<double> fair_rates(std::span<const Transfer> transfers, size_t nodes, double link) {
  std::vector<double> rates(transfers.size(), -1);
  std::vector<double> left(2 * nodes, link);  // sending, then receiving
  std::vector<size_t> open(2 * nodes);
  for (const Transfer& t : transfers) {
    ++open[t.from];
    ++open[nodes + t.to];
  }
  size_t unset = transfers.size();
  while (unset > 0) {
    double least = std::numeric_limits<double>::max();
    for (size_t i = 0; i < left.size(); ++i) {
      if (open[i] > 0) least = std::min(least, left[i] / static_cast<double>(open[i]));
    }
    // Those on a link that has no more than that for each.
    std::vector<size_t> given;
    for (size_t i = 0; i < transfers.size(); ++i) {
      if (rates[i] >= 0) continue;
      const size_t sends = transfers[i].from;
      const size_t receives = nodes + transfers[i].to;
      const double sending = left[sends] / static_cast<double>(open[sends]);
      const double receiving = left[receives] / static_cast<double>(open[receives]);
      if (std::min(sending, receiving) <= least * (1 + 1e-12)) given.push_back(i);
    }
    for (const size_t i : given) {
      rates[i] = std::max(least, 0.0);
      for (const size_t end : {transfers[i].from, nodes + transfers[i].to}) {
        left[end] = std::max(left[end] - least, 0.0);
        --open[end];
      }
      --unset;
    }
  }
  return rates;
}

}  // namespace forerun::scale
