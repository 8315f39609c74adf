// Numbers of a trace: exact, and the quick way gives what the general one gives.
#include "ingest/kineto/numbers.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace forerun {
namespace {

TEST(TraceNumbers, TimesBecomeWholeNanoseconds) {
  EXPECT_EQ(nanoseconds_of("0"), 0);
  EXPECT_EQ(nanoseconds_of("12"), 12'000);
  EXPECT_EQ(nanoseconds_of("12."), 12'000);
  EXPECT_EQ(nanoseconds_of("12.5"), 12'500);
  EXPECT_EQ(nanoseconds_of("12.0004"), 12'000);
  EXPECT_EQ(nanoseconds_of("12.0005"), 12'001);
  EXPECT_EQ(nanoseconds_of("-1.5"), -1'500);
  EXPECT_EQ(nanoseconds_of("\"7.25\""), 7'250);
  EXPECT_EQ(nanoseconds_of("1.5e3"), 1'500'000);
  EXPECT_EQ(nanoseconds_of("15e-4"), 2);
  EXPECT_EQ(nanoseconds_of("1712195495519689.253"), 1712195495519689253);
  EXPECT_EQ(nanoseconds_of("3000000000000000"), kLongestTime);
}

TEST(TraceNumbers, RefusesWhatIsNone) {
  for (const char* text : {"", ".", "-", "abc", "1e", "1.2.3", "12x", "nan", "true", "\"\"", "3000000000000001",
                           "99999999999999999999", "1e30"}) {
    EXPECT_FALSE(nanoseconds_of(text)) << text;
  }
  for (const char* text : {"", "0x0", "null", "\"stream\"", "99999999999999999999999"}) {
    EXPECT_FALSE(integer_of(text)) << text;
  }
  EXPECT_EQ(integer_of("-5"), -5);
  EXPECT_EQ(integer_of("\"42\""), 42);
  EXPECT_EQ(integer_of("7.9"), 7);
}

TEST(TraceNumbers, TheQuickWayAgreesWithTheGeneralOne) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const auto whole = random() % (uint64_t{1} << (random() % 60));
    const std::string decimals = std::to_string(random() % 1000);
    const std::string text = std::to_string(whole) + "." + decimals;
    // The general way takes what is in quotes.
    EXPECT_EQ(nanoseconds_of(text), nanoseconds_of("\"" + text + "\"")) << text;
  }
}

}  // namespace
}  // namespace forerun
