#include "cost/collective/node_link.h"

namespace forerun {
namespace {

constexpr double kThroughHostMemory = 0.44;

}  // namespace

NodeLink node_link(const Device& gpu, int64_t gpus) {
  if (gpu.link_bandwidth > 0 && gpu.linked_gpus > 0 && gpus > gpu.linked_gpus) {
    return {"PCIe through host memory", gpu.pcie_bandwidth / 2 * kThroughHostMemory};
  }
  if (gpu.link_bandwidth > 0) return {"NVLink", gpu.link_bandwidth / 2};
  return {"PCIe", gpu.pcie_bandwidth / 2};
}

}  // namespace forerun
