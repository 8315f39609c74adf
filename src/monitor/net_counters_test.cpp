#include "monitor/net_counters.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "monitor/netlink.h"

namespace forerun::monitor {
namespace {

constexpr const char* kTable =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
    "    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0   "
    "    "
    "   0\n"
    "  eth0: 836873483   33443    0    0    0     0          0         0  2083683   29603    0    0    0     0       0 "
    "    "
    "     0\n"
    "br-1:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
    "torn: 12 13\n";

TEST(NetCounters, ParsesReceivedAndSentBytes) {
  const std::vector<InterfaceBytes> rows = parse_net_dev(kTable);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].name, "eth0");
  EXPECT_EQ(rows[1].received, 836873483u);
  EXPECT_EQ(rows[1].sent, 2083683u);
  EXPECT_EQ(rows[2].name, "br-1");
  EXPECT_EQ(rows[2].sent, 9u);
  EXPECT_TRUE(parse_net_dev("").empty());
}

TEST(NetCounters, TotalsAllButTheLoopbackOrTheNamedOne) {
  const std::vector<InterfaceBytes> rows = parse_net_dev(kTable);
  EXPECT_EQ(total_of(rows, "").sent, 2083692u);
  EXPECT_EQ(total_of(rows, "lo").received, 100u);
  EXPECT_EQ(total_of(rows, "eth9").received, 0u);
}

TEST(NetCounters, ReadsTheKernelsTableAgainAndAgain) {
  auto counters = NetCounters::of_process(getpid());
  ASSERT_TRUE(counters.ok()) << counters.error().message();
  ASSERT_FALSE(counters->read().empty());
  EXPECT_FALSE(counters->read().empty());
}

TEST(NetCounters, SaysWhatIsMissing) {
  const auto counters = NetCounters::of_namespace("no-such-namespace");
  ASSERT_FALSE(counters.ok());
  EXPECT_EQ(counters.error().where, "/run/netns/no-such-namespace");
}

TEST(ParseRate, TakesUnitsAndRefusesOtherText) {
  EXPECT_EQ(*parse_rate("10G"), 10'000'000'000u);
  EXPECT_EQ(*parse_rate("2.5G"), 2'500'000'000u);
  EXPECT_EQ(*parse_rate("200M"), 200'000'000u);
  for (const char* text : {"", "10", "G", "-1G", "10X", "1e9G"}) EXPECT_FALSE(parse_rate(text).ok()) << text;
}

TEST(RateLimit, KeepsItsSizesWithinBounds) {
  EXPECT_EQ(RateLimit::of(1'000'000).burst_bytes, 256u << 10);
  EXPECT_EQ(RateLimit::of(10'000'000'000).burst_bytes, 1'250'000u);
  EXPECT_EQ(RateLimit::of(10'000'000'000).queue_bytes, 256u << 20);
}

}  // namespace
}  // namespace forerun::monitor
