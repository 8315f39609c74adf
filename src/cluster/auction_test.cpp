// Themis' auction against trying all allocations, and payments worked out by hand.
#include "cluster/auction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace forerun::cluster {
namespace {

double product_of(const std::vector<AuctionBid>& bids, const std::vector<AuctionWin>& wins) {
  double product = 1;
  for (const AuctionWin& win : wins) product *= bids[win.bid].gain;
  return product;
}

// Every set of bids that fits.
double best_product(const std::vector<AuctionBid>& bids, const std::vector<int32_t>& gpus) {
  double best = 1;
  for (uint32_t taken = 0; taken < (1U << bids.size()); ++taken) {
    std::vector<int32_t> room = gpus;
    std::set<uint32_t> bidders;
    double product = 1;
    bool fits = true;
    for (size_t i = 0; i < bids.size(); ++i) {
      if ((taken >> i & 1) == 0) continue;
      room[bids[i].type] -= bids[i].gpus;
      fits = fits && room[bids[i].type] >= 0 && bidders.insert(bids[i].bidder).second;
      product *= bids[i].gain;
    }
    if (fits) best = std::max(best, product);
  }
  return best;
}

TEST(Auction, MakesTheProductOfValuesLargest) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<AuctionBid> bids;
    for (uint32_t i = 0; i < 10; ++i) {
      const double gain = 1 + static_cast<double>(random() % 100) / 50;
      bids.push_back({i / 2, i % 2, static_cast<int32_t>(random() % 3 + 1), gain});
    }
    const std::vector<int32_t> gpus = {3, 2};
    EXPECT_NEAR(product_of(bids, run_auction(bids, gpus)), best_product(bids, gpus), 1e-6);
  }
}

TEST(Auction, WinnersPayWhatTheyCostOthers) {
  // One GPU: the winner keeps it for 1 / (what the loser would have gained) of the lease.
  const auto contested = run_auction({{0, 0, 1, 4}, {1, 0, 1, 2}}, {1});
  ASSERT_EQ(contested.size(), 1U);
  EXPECT_EQ(contested[0].bid, 0U);
  EXPECT_NEAR(contested[0].keep, 0.5, 1e-6);
  // Two GPUs: nobody is in the other's way.
  for (const AuctionWin& win : run_auction({{0, 0, 1, 4}, {1, 0, 1, 2}}, {2})) EXPECT_NEAR(win.keep, 1, 1e-6);
  EXPECT_TRUE(run_auction({{0, 0, 1, 1}}, {1}).empty());  // a bid that gains nothing
}

TEST(Auction, OfLikeBidsTheEarlierWin) {
  std::vector<AuctionBid> bids;
  for (uint32_t i = 0; i < 12; ++i) bids.push_back({i, 0, 1, 1.5 + 1e-12 * i});
  for (const size_t most_steps : {kMostAuctionSteps, size_t{0}}) {
    const auto wins = run_auction(bids, {3}, most_steps);
    ASSERT_EQ(wins.size(), 3U);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(wins[i].bid, i);
  }
}

class ManyBids : public testing::TestWithParam<size_t> {};

TEST_P(ManyBids, AreTakenByValuePerGpu) {
  std::vector<AuctionBid> bids;
  for (uint32_t i = 0; i < 100; ++i) bids.push_back({i, 0, 1, 2 + i * 0.01});
  const auto wins = run_auction(bids, {10}, GetParam());
  ASSERT_EQ(wins.size(), 10U);
  EXPECT_EQ(wins.front().bid, 90U);
  for (const AuctionWin& win : wins) EXPECT_NEAR(win.keep, 1 / 2.89, 1e-6);  // the best loser's gain
}

INSTANTIATE_TEST_SUITE_P(Auction, ManyBids, testing::Values(kMostAuctionSteps, size_t{0}));  // exact, and greedy

}  // namespace
}  // namespace forerun::cluster
