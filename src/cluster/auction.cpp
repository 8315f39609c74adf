#include "cluster/auction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cluster/choice_knapsack.h"
#include "cluster/linear_program.h"

namespace forerun::cluster {
namespace {

// By bid: the logarithm of its gain, so that sums stand for products; 0: it does not count.
std::vector<int64_t> worths(const std::vector<AuctionBid>& bids) {
  std::vector<int64_t> values;
  for (const AuctionBid& bid : bids) values.push_back(bid.gain > 1 ? knapsack_value(std::log(bid.gain)) : 0);
  return values;
}

double payment(int64_t others_with, int64_t others_without) {
  return steady(std::exp(-from_knapsack_value(std::max<int64_t>(others_without - others_with, 0))));
}

// Bidders in the order of their first bids, each with its bids in order.
struct Bidders {
  std::vector<KnapsackChooser> options;
  std::vector<std::vector<size_t>> bids;  // by option
};

Bidders bidders_of(const std::vector<AuctionBid>& bids, const std::vector<int64_t>& worth) {
  Bidders bidders;
  std::map<uint32_t, size_t> places;
  for (size_t i = 0; i < bids.size(); ++i) {
    if (worth[i] == 0) continue;
    const auto [place, is_new] = places.try_emplace(bids[i].bidder, bidders.options.size());
    if (is_new) {
      bidders.options.emplace_back();
      bidders.bids.emplace_back();
    }
    bidders.options[place->second].push_back({bids[i].type, bids[i].gpus, worth[i]});
    bidders.bids[place->second].push_back(i);
  }
  return bidders;
}

std::vector<AuctionWin> exact_wins(const ChoiceKnapsack& knapsack, const Bidders& bidders,
                                   const std::vector<int64_t>& worth) {
  const std::vector<int64_t> without = knapsack.totals_without();
  std::vector<AuctionWin> wins;
  for (size_t i = 0; i < bidders.bids.size(); ++i) {
    if (knapsack.picks()[i] < 0) continue;
    const size_t bid = bidders.bids[i][static_cast<size_t>(knapsack.picks()[i])];
    wins.push_back({bid, payment(knapsack.total() - worth[bid], without[i])});
  }
  std::sort(wins.begin(), wins.end(), [](const AuctionWin& a, const AuctionWin& b) { return a.bid < b.bid; });
  return wins;
}

// The bids by log value per GPU, the best first.
std::vector<size_t> by_density(const std::vector<AuctionBid>& bids, const std::vector<int64_t>& worth) {
  std::vector<size_t> order;
  for (size_t i = 0; i < bids.size(); ++i) {
    if (worth[i] > 0) order.push_back(i);
  }
  __extension__ using Wide = __int128;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return static_cast<Wide>(worth[a]) * bids[b].gpus > static_cast<Wide>(worth[b]) * bids[a].gpus;
  });
  return order;
}

// Takes bids in that order as long as there is room; those of `settled` have what they get.
std::vector<size_t> take_greedily(const std::vector<AuctionBid>& bids, const std::vector<size_t>& order,
                                  std::vector<int32_t>& room, std::set<uint32_t>& settled) {
  std::vector<size_t> won;
  for (const size_t i : order) {
    const AuctionBid& bid = bids[i];
    if (bid.gpus > room[bid.type] || !settled.insert(bid.bidder).second) continue;
    room[bid.type] -= bid.gpus;
    won.push_back(i);
  }
  return won;
}

std::vector<AuctionWin> greedy_wins(const std::vector<AuctionBid>& bids, const std::vector<int32_t>& gpus,
                                    const std::vector<int64_t>& worth) {
  const std::vector<size_t> order = by_density(bids, worth);
  std::vector<int32_t> room = gpus;
  std::set<uint32_t> settled;
  std::vector<size_t> won = take_greedily(bids, order, room, settled);
  std::sort(won.begin(), won.end());
  std::vector<AuctionWin> wins;
  for (const size_t i : won) {
    // What the winner leaves goes to those who have nothing.
    std::vector<int32_t> left = room;
    left[bids[i].type] += bids[i].gpus;
    std::set<uint32_t> others = settled;
    int64_t gained = 0;
    for (const size_t other : take_greedily(bids, order, left, others)) gained += worth[other];
    wins.push_back({i, payment(0, gained)});
  }
  return wins;
}

}  // namespace

std::vector<AuctionWin> run_auction(const std::vector<AuctionBid>& bids, const std::vector<int32_t>& gpus,
                                    size_t most_steps) {
  const std::vector<int64_t> worth = worths(bids);
  const Bidders bidders = bidders_of(bids, worth);
  const auto exact = ChoiceKnapsack::solve(bidders.options, gpus, most_steps);
  return exact ? exact_wins(*exact, bidders, worth) : greedy_wins(bids, gpus, worth);
}

}  // namespace forerun::cluster
