#include "testbed/fair_share.h"

#include <algorithm>
#include <limits>

namespace forerun::scale {

std::vector<double> fair_rates(std::span<const Transfer> transfers, size_t nodes, double link) {
  return fair_rates(transfers, std::vector<double>(2 * nodes, link));
}

std::vector<double> fair_rates(std::span<const Transfer> transfers, std::vector<double> left) {
  const size_t nodes = left.size() / 2;
  std::vector<double> rates(transfers.size(), -1);
  std::vector<double> open(2 * nodes);  // weights of transfers without a rate
  std::vector<size_t> count(2 * nodes);
  for (const Transfer& t : transfers) {
    for (const size_t end : {t.from, nodes + t.to}) {
      open[end] += t.weight;
      ++count[end];
    }
  }
  size_t unset = transfers.size();
  while (unset > 0) {
    double least = std::numeric_limits<double>::max();
    for (size_t i = 0; i < left.size(); ++i) {
      if (count[i] > 0) least = std::min(least, left[i] / open[i]);
    }
    // Those on a link that has no more than that for each.
    std::vector<size_t> given;
    for (size_t i = 0; i < transfers.size(); ++i) {
      if (rates[i] >= 0) continue;
      const size_t sends = transfers[i].from;
      const size_t receives = nodes + transfers[i].to;
      const double sending = left[sends] / open[sends];
      const double receiving = left[receives] / open[receives];
      if (std::min(sending, receiving) <= least * (1 + 1e-12)) given.push_back(i);
    }
    for (const size_t i : given) {
      rates[i] = std::max(least * transfers[i].weight, 0.0);
      for (const size_t end : {transfers[i].from, nodes + transfers[i].to}) {
        left[end] = std::max(left[end] - rates[i], 0.0);
        open[end] -= transfers[i].weight;
        --count[end];
      }
      --unset;
    }
  }
  return rates;
}

}  // namespace forerun::scale
