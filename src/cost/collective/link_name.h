// A network by name: a link of the catalogue, several of them side by side ("4xhdr"), or a rate ("800Gb/s", "100GB/s").
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/catalogue.h"

namespace forerun {

Result<Link> network_by_name(std::string_view name, const DeviceCatalogue& catalogue);

// The network of nodes of so many such GPUs where nobody names one: the rails that the vendor's own machine has for each GPU.
struct UsualNetwork {
  std::string name;     // as network_by_name takes it: "8xndr"
  std::string machine;  // "a DGX H100"; empty: none is known, and the network is an assumption
};
UsualNetwork usual_network(const Device& gpu, int64_t node);

// The connection of a GPU to others of its node, of so many in use: NVLink or the like where it joins them, else PCIe.
Link link_within(const Device& gpu, int64_t node);

}  // namespace forerun
