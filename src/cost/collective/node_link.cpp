#include "cost/collective/node_link.h"

namespace forerun {
namespace {

constexpr int64_t kBridgedGpus = 2;
constexpr double kThroughHostMemory = 0.44;

bool is_bridged(const Device& gpu) {
  return gpu.link_bandwidth > 0 && (gpu.architecture == "turing" || gpu.architecture == "ampere-rtx");
}

}  // namespace

NodeLink node_link(const Device& gpu, int64_t gpus) {
  if (is_bridged(gpu) && gpus > kBridgedGpus) {
    return {"PCIe through host memory", gpu.pcie_bandwidth / 2 * kThroughHostMemory};
  }
  if (gpu.link_bandwidth > 0) return {"NVLink", gpu.link_bandwidth / 2};
  return {"PCIe", gpu.pcie_bandwidth / 2};
}

}  // namespace forerun
