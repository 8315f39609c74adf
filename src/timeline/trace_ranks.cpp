#include "timeline/trace_ranks.h"

#include <algorithm>

#include "base/statistics.h"

namespace forerun {
namespace {

struct Collective {
  int64_t start = 0, end = 0;
  std::string_view what;  // the kernel's name up to its protocol and algorithm
};

// "ncclKernel_AllReduce_RING_LL_Sum_float(...)" and its like on another rank may differ in the algorithm they show.
std::string_view collective_of(std::string_view name) {
  for (const std::string_view what :
       {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "SendRecv", "AllToAll", "Reduce"}) {
    if (name.find(what) != std::string_view::npos) return what;
  }
  return {};
}

std::vector<Collective> collectives_of(const RankView& rank) {
  std::vector<Collective> found;
  for (const EventIndex i : rank.work) {
    if (rank.kinds[i] != WorkKind::communication) continue;
    found.push_back({rank.trace->events.start[i], rank.trace->events.end(i), collective_of(rank.trace->name(i))});
  }
  return found;
}

bool same_sequence(const std::vector<Collective>& a, const std::vector<Collective>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.what == y.what || x.what.empty() || y.what.empty();
         });
}

// Who came last at each collective, and by how much.
void count_arrivals(const std::vector<std::vector<Collective>>& collectives, RankComparison& result) {
  const size_t ranks = result.ranks.size();
  for (size_t k = 0; k < collectives.front().size(); ++k) {
    int64_t last = INT64_MIN, second = INT64_MIN;
    size_t who = 0;
    for (size_t r = 0; r < ranks; ++r) {
      const int64_t arrival = collectives[r][k].start - result.ranks[r].clock_offset.value;
      if (arrival > last) {
        second = last;
        last = arrival;
        who = r;
      } else {
        second = std::max(second, arrival);
      }
    }
    ++result.ranks[who].arrived_last;
    result.ranks[who].kept_waiting += Nanoseconds((last - second) * static_cast<int64_t>(ranks - 1));
  }
}

int64_t straggler_of(const RankComparison& result) {
  int64_t most = -1;
  for (size_t r = 0; r < result.ranks.size(); ++r) {
    const int64_t times = result.ranks[r].arrived_last;
    // Twice its fair share, and at least half of all.
    if (2 * times >= result.matched && times * static_cast<int64_t>(result.ranks.size()) >= 2 * result.matched) {
      if (most < 0 || times > result.ranks[static_cast<size_t>(most)].arrived_last) most = static_cast<int64_t>(r);
    }
  }
  return most;
}

}  // namespace

RankComparison compare_ranks(std::span<const RankView> ranks) {
  RankComparison result;
  std::vector<std::vector<Collective>> collectives;
  for (const RankView& view : ranks) {
    collectives.push_back(collectives_of(view));
    RankRow row;
    row.rank = view.trace->rank;
    row.file = view.trace->file;
    row.collectives = static_cast<int64_t>(collectives.back().size());
    row.step = view.step;
    if (view.breakdown != nullptr) {
      row.compute = view.breakdown->compute;
      row.communication = view.breakdown->communication;
    }
    result.ranks.push_back(row);
  }
  if (ranks.size() < 2 || collectives.front().empty()) return result;
  bool all_alike = true;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!same_sequence(collectives.front(), collectives[r])) {
      all_alike = false;
      continue;
    }
    std::vector<int64_t> differences;
    for (size_t k = 0; k < collectives[r].size(); ++k) {
      differences.push_back(collectives[r][k].end - collectives.front()[k].end);
    }
    result.ranks[r].clock_offset = Nanoseconds(upper_median(std::move(differences)));
    result.ranks[r].aligned = true;
  }
  if (!all_alike) return result;
  result.matched = static_cast<int64_t>(collectives.front().size());
  count_arrivals(collectives, result);
  result.straggler = straggler_of(result);
  return result;
}

}  // namespace forerun
