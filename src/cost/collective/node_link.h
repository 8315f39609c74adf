// What joins the GPUs of a node: NVLink or the like, PCIe, or the host's memory.
//
// GeForce boards with NVLink have a bridge between two of them (`link_gpus` in their files), and the driver gives them no
// access to one another over PCIe, so that in a node of more a ring passes through the host's memory. How much less than
// PCIe that carries: machines of four RTX 2080 Ti all-reduced at 4.1 to 6.5 GB/s of 15.75 (HKBU's bulk-synchronous rows on
// one machine, `forerun eval --suite ddl-benchmark`), 44 % of what NCCL reaches elsewhere. Left out: boards for data centres whose
// NVLink is a bridge too.
#pragma once

#include <cstdint>
#include <string>

#include "device/device.h"

namespace forerun {

struct NodeLink {
  std::string name;      // "NVLink", "PCIe", "PCIe through host memory"
  double bandwidth = 0;  // bytes per second, one direction; 0: the device's file says nothing
};
NodeLink node_link(const Device& gpu, int64_t gpus);

}  // namespace forerun
