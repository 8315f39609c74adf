// What collectives reach of links, and where the constants stand.
#include "cost/collective/link_efficiency.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

Topology two_nodes() {
  return {2, 8, {"within", {}, Nanoseconds(3000), 300e9}, {"between", {}, Nanoseconds(5000), 100e9}};
}

TEST(LinkEfficiency, LinksCarryTheirShareAndStepsWaitAsMeasured) {
  const CollectiveEfficiency efficiency{{.call_us = 40, .step_us = 2, .share = 0.7}, {.call_us = 50, .share = 0.85}};
  const Topology found = reached(two_nodes(), efficiency);
  EXPECT_DOUBLE_EQ(found.within.bandwidth, 210e9);
  EXPECT_EQ(found.within.latency, Nanoseconds(2000));
  EXPECT_DOUBLE_EQ(found.between.bandwidth, 85e9);
  EXPECT_EQ(found.between.latency, Nanoseconds(5000));  // no step was measured: the link's own
  EXPECT_EQ(call_of(two_nodes(), efficiency), Nanoseconds(50'000));
  Topology one = two_nodes();
  one.nodes = 1;
  EXPECT_EQ(call_of(one, efficiency), Nanoseconds(40'000));
  one.ranks_per_node = 1;
  EXPECT_EQ(call_of(one, efficiency), Nanoseconds(0));
}

TEST(LinkEfficiency, WithoutConstantsLinksAreAsTheyAre) {
  const Topology line = two_nodes(), found = reached(line, {});
  EXPECT_EQ(found.within.bandwidth, line.within.bandwidth);
  EXPECT_EQ(found.within.latency, line.within.latency);
  EXPECT_EQ(call_of(line, {}), Nanoseconds(0));
}

TEST(LinkEfficiency, TheUsualConstantsAreThoseOfTheDataFolder) {
  const auto usual = usual_collective_efficiency();
  ASSERT_TRUE(usual.ok()) << usual.error().message();
  for (const LinkEfficiency& link : {usual->within, usual->between}) {
    EXPECT_GT(link.share, 0.5);
    EXPECT_LT(link.share, 1);
    EXPECT_GT(link.call_us, 1);
  }
}

}  // namespace
}  // namespace forerun
