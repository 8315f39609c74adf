// Links by the names users give them.
#include "cost/collective/link_name.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"

namespace forerun {
namespace {

TEST(LinkName, LinksSeveralAndRates) {
  DeviceCatalogue catalogue;
  ASSERT_TRUE(catalogue.add(Link{"InfiniBand HDR", {"hdr"}, nanoseconds_from_us(5), 25e9}));
  EXPECT_EQ(network_by_name("hdr", catalogue)->bandwidth, 25e9);
  EXPECT_EQ(network_by_name("4xhdr", catalogue)->bandwidth, 100e9);
  EXPECT_EQ(network_by_name("800Gb/s", catalogue)->bandwidth, 100e9);
  EXPECT_EQ(network_by_name("12.5GB/s", catalogue)->bandwidth, 12.5e9);
  EXPECT_FALSE(network_by_name("nothing", catalogue));
  EXPECT_FALSE(network_by_name("-3Gb/s", catalogue));
  for (const char* rate : {"1e300Gb/s", "1e-300Gb/s", "1e7Gb/s", "infGB/s", "nanGb/s", "0Gb/s"}) {
    EXPECT_FALSE(network_by_name(rate, catalogue)) << rate;
  }
}

TEST(LinkName, TheUsualNetworkIsThatOfTheVendorsMachine) {
  const auto catalogue = load_devices(*data_dir() / "devices");
  ASSERT_TRUE(catalogue.ok()) << catalogue.error().message();
  const auto usual = [&](const char* gpu, int64_t node) { return usual_network(*catalogue->find(gpu), node); };
  EXPECT_EQ(usual("a100", 8).name, "8xhdr");
  EXPECT_EQ(usual("a100", 8).machine, "a DGX A100");
  EXPECT_EQ(usual("h100", 8).name, "8xndr");
  EXPECT_EQ(usual("h200", 4).name, "4xndr");  // a rail for each GPU
  EXPECT_EQ(usual("h200", 1).name, "1xndr");
  EXPECT_EQ(usual("b200", 8).name, "8xndr");
  EXPECT_EQ(usual("b200", 72).name, "72xndr");
  EXPECT_EQ(usual("b300", 8).name, "8xxdr");
  EXPECT_EQ(usual("v100", 8).name, "4xedr");
  EXPECT_EQ(usual("t4", 8).name, "4xhdr");
  EXPECT_EQ(usual("h100-pcie", 8).machine, "");  // bridges join two
  EXPECT_EQ(usual("rtx 5090", 8).machine, "");
  for (const Device& gpu : catalogue->devices()) {
    for (const int64_t node : {1, 8, 72, 1'000'000}) {
      EXPECT_TRUE(network_by_name(usual_network(gpu, node).name, *catalogue).ok()) << gpu.name << " " << node;
    }
  }
}

}  // namespace
}  // namespace forerun
