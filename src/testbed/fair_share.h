// Max-min fair rates of transfers over the links of nodes: what many TCP connections come to.
//
// Every node has one link, full duplex, of one rate for all. The transfers of the link with the least for each are
// given that, then the rest is shared out in the same way (progressive filling). A transfer with a weight of two has
// what two have. Left out: round-trip times, slow start.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace forerun::scale {

struct Transfer {
  size_t from = 0;  // node
  size_t to = 0;
  double weight = 1;
};

// The rate of each transfer, with links of rate `link`.
std::vector<double> fair_rates(std::span<const Transfer> transfers, size_t nodes, double link);
// With a rate for what each node sends, and then for what each receives.
std::vector<double> fair_rates(std::span<const Transfer> transfers, std::vector<double> links);

}  // namespace forerun::scale
