// Themis' partial-allocation auction: GPUs go where the product of the bidders' values is largest, and each winner pays
// for what its presence costs the others by using its GPUs only part of the time.
//
// A bid is a gang on a type of GPU and what the bidder's value, 1 / finish-time fairness, would be with it, over its value
// with nothing. The payment of winner i: keep = product of the others' values in this allocation / product of theirs in
// the best allocation without i, at most 1. So telling the truth pays: bidding more makes others lose more. Exact
// (cluster/choice_knapsack.h) where that is not much work; else the allocation is greedy by log value per GPU, and so are
// payments. Values that differ by less than a millionth are alike, and of like ones earlier bids win.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace forerun::cluster {

struct AuctionBid {
  uint32_t bidder = 0;
  uint32_t type = 0;
  int32_t gpus = 1;
  double gain = 1;  // value with it / value with nothing; bids that gain nothing do not count
};

struct AuctionWin {
  size_t bid = 0;   // index
  double keep = 1;  // of the lease
};

inline constexpr size_t kMostAuctionSteps = 2'000'000;

// At most one bid of each bidder wins. Winners in the order of their bids. What is kept is a multiple of 2^-20.
// `most_steps`: of an exact allocation, as ChoiceKnapsack counts them.
std::vector<AuctionWin> run_auction(const std::vector<AuctionBid>& bids, const std::vector<int32_t>& gpus,
                                    size_t most_steps = kMostAuctionSteps);

}  // namespace forerun::cluster
