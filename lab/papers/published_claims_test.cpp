// Claims of papers as they are typed: whole ones are read, and a row that tells neither an experiment nor why there is none is
// refused.
#include "lab/papers/published_claims.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

Result<PublishedClaims> claims_in(const std::string& rows,
                                  const std::string& schema = "forerun.papers.optimizations/1") {
  auto file = JsonObject::parse(R"({"schema": ")" + schema + R"(", "daydream": {"mean_error": 0.08,
      "largest_error": 0.15}, "claims": [)" +
                                    rows + "]}",
                                "claims.json");
  if (!file) return file.error();
  return published_claims(std::move(*file));
}

TEST(PublishedClaims, AreReadAsTyped) {
  const auto claims = claims_in(R"(
      {"optimization": "p3", "source": "S", "claim": "C", "throughput": 1.25, "differs": "D", "model": "resnet50",
       "batch": 32, "gpu": "p100", "before": ["wfbp"], "after": ["p3:workers=4"], "largest_over_gbps": ["1", "10"]},
      {"optimization": "metaflow", "source": "S", "claim": "C", "cannot": "no list"})");
  ASSERT_TRUE(claims.ok()) << claims.error().message();
  ASSERT_EQ(claims->claims.size(), 2U);
  EXPECT_EQ(claims->claims[0].throughput, 1.25);
  EXPECT_EQ(claims->claims[0].gbps, (std::vector<std::string>{"1", "10"}));
  EXPECT_EQ(claims->claims[1].cannot, "no list");
  EXPECT_EQ(claims->daydream_largest, 0.15);
}

TEST(PublishedClaims, BrokenOnesAreRefused) {
  EXPECT_FALSE(claims_in("", "forerun.papers.ets/1").ok());
  EXPECT_FALSE(claims_in(R"({"optimization": "p3", "source": "S", "claim": "C"})").ok());
  EXPECT_FALSE(claims_in(R"({"optimization": "p3", "source": "S", "claim": "C", "throughput": 1.2, "differs": "D",
      "model": "resnet50", "batch": 32, "gpu": "p100", "after": []})")
                   .ok());
  EXPECT_FALSE(claims_in(R"({"optimization": "p3", "source": "S", "claim": "C", "throughput": -0.2, "differs": "D",
      "model": "resnet50", "batch": 32, "gpu": "p100", "after": ["p3"]})")
                   .ok());
}

TEST(PublishedClaims, ThoseOfTheDataFolderAreWhole) {
  const auto claims = published_claims();
  ASSERT_TRUE(claims.ok()) << claims.error().message();
  EXPECT_GE(claims->claims.size(), 6U);
}

}  // namespace
}  // namespace forerun
