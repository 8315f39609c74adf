// A network by name: a link of the catalogue, several of them side by side ("4xhdr"), or a rate ("800Gb/s", "100GB/s").
#pragma once

#include <string_view>

#include "base/result.h"
#include "device/catalogue.h"

namespace forerun {

Result<Link> network_by_name(std::string_view name, const DeviceCatalogue& catalogue);

// The connection of a GPU to others of its node, of so many in use: NVLink or the like where it joins them, else PCIe.
Link link_within(const Device& gpu, int64_t node);

}  // namespace forerun
