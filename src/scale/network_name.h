// A network by name: a link of the catalogue, several of them side by side ("4xhdr"), or a rate ("800Gb/s", "100GB/s").
#pragma once

#include <string_view>

#include "base/result.h"
#include "device/catalogue.h"

namespace forerun::scale {

Result<Link> network_by_name(std::string_view name, const DeviceCatalogue& catalogue);

// The connection of a GPU to others of its node: NVLink or the like where it has one, else PCIe.
Link link_within(const Device& gpu);

}  // namespace forerun::scale
