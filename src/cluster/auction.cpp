#include "cluster/auction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "cluster/linear_program.h"

namespace forerun::cluster {
namespace {

constexpr size_t kMostExact = 64;
constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();

double worth(const AuctionBid& bid) { return std::log(bid.gain); }

// The bids that win if `without` does not take part.
std::vector<size_t> best_exact(const std::vector<AuctionBid>& bids, const std::vector<int32_t>& gpus,
                               uint32_t without) {
  LinearProgram program;
  std::vector<size_t> order;
  std::map<uint32_t, LinearProgram::Terms> one;
  std::vector<LinearProgram::Terms> room(gpus.size());
  for (size_t i = 0; i < bids.size(); ++i) {
    if (bids[i].bidder == without || bids[i].gain <= 1) continue;
    const double earlier = 1e-7 * (1 - static_cast<double>(i) / static_cast<double>(bids.size()));  // breaks ties
    const int variable = program.add_variable(worth(bids[i]) + earlier, 0, 1, true);
    order.push_back(i);
    one[bids[i].bidder].emplace_back(variable, 1);
    room[bids[i].type].emplace_back(variable, bids[i].gpus);
  }
  for (auto& [bidder, terms] : one) program.add_row(0, 1, terms);
  for (size_t type = 0; type < gpus.size(); ++type) program.add_row(0, gpus[type], room[type]);
  std::vector<size_t> won;
  const auto found = order.empty() ? std::nullopt : program.maximize();
  for (size_t i = 0; found && i < order.size(); ++i) {
    if ((*found)[i] > 0.5) won.push_back(order[i]);
  }
  return won;
}

// The bids by log value per GPU, the best first.
std::vector<size_t> by_density(const std::vector<AuctionBid>& bids) {
  std::vector<size_t> order;
  for (size_t i = 0; i < bids.size(); ++i) {
    if (bids[i].gain > 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return worth(bids[a]) * bids[b].gpus > worth(bids[b]) * bids[a].gpus; });
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

double total(const std::vector<AuctionBid>& bids, const std::vector<size_t>& won, uint32_t without) {
  double sum = 0;
  for (const size_t i : won) sum += bids[i].bidder == without ? 0 : worth(bids[i]);
  return sum;
}

double payment(double others_with, double others_without) {
  return std::clamp(std::exp(others_with - others_without), 0.0, 1.0);
}

}  // namespace

std::vector<AuctionWin> run_auction(const std::vector<AuctionBid>& bids, const std::vector<int32_t>& gpus) {
  std::vector<AuctionWin> wins;
  if (bids.size() <= kMostExact) {
    const std::vector<size_t> won = best_exact(bids, gpus, kNobody);
    for (const size_t i : won) {
      const uint32_t bidder = bids[i].bidder;
      const double without = total(bids, best_exact(bids, gpus, bidder), bidder);
      wins.push_back({i, payment(total(bids, won, bidder), without)});
    }
    return wins;
  }
  const std::vector<size_t> order = by_density(bids);
  std::vector<int32_t> room = gpus;
  std::set<uint32_t> settled;
  std::vector<size_t> won = take_greedily(bids, order, room, settled);
  std::sort(won.begin(), won.end());
  for (const size_t i : won) {
    // What the winner leaves goes to those who have nothing.
    std::vector<int32_t> left = room;
    left[bids[i].type] += bids[i].gpus;
    std::set<uint32_t> others = settled;
    wins.push_back({i, payment(0, total(bids, take_greedily(bids, order, left, others), bids[i].bidder))});
  }
  return wins;
}

}  // namespace forerun::cluster
