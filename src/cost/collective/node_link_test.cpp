#include "cost/collective/node_link.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(NodeLink, ABridgeJoinsTwoGpus) {
  Device gpu;
  gpu.linked_gpus = 2;
  gpu.link_bandwidth = 100e9;
  gpu.pcie_bandwidth = 32e9;
  EXPECT_EQ(node_link(gpu, 2).bandwidth, 50e9);
  EXPECT_LT(node_link(gpu, 4).bandwidth, 16e9);
  EXPECT_NE(node_link(gpu, 4).name.find("host memory"), std::string::npos);
  gpu.linked_gpus = 0;
  EXPECT_EQ(node_link(gpu, 8).bandwidth, 50e9);
  gpu.link_bandwidth = 0;
  EXPECT_EQ(node_link(gpu, 8).bandwidth, 16e9);
  EXPECT_EQ(node_link(gpu, 8).name, "PCIe");
}

}  // namespace
}  // namespace forerun
