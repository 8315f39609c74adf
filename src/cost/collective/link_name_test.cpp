// Links by the names users give them.
#include "cost/collective/link_name.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace forerun
