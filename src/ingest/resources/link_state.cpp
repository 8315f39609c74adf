#include "ingest/resources/link_state.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace forerun {
namespace {

constexpr double kLargeBytes = 15e6;  // transfers of less are over before they share anything
constexpr double kEvenShare = 1.3;    // times an even share of the link: what more is, is favoured
constexpr double kWholeBurst = 0.7;   // of a model

struct TellingWindow {
  size_t at;  // of the session
  LinksSeen links;
};

LinksSeen links_seen(const ResourceRecord& record) {
  const BurstFigures& received = record.measured.metrics[3];
  const double bytes = 1e3 * received.amount * received.burst_ms;
  if (bytes < kWholeBurst * 4 * record.parameters) return LinksSeen::last;
  const double share = 8e6 * received.amount / record.bits_per_second;
  return share * static_cast<double>(record.workers) < kEvenShare ? LinksSeen::even : LinksSeen::first;
}

// What most of the nearest say, the very nearest where all differ.
LinksSeen nearest_links(const std::vector<TellingWindow>& telling, size_t at) {
  constexpr size_t kAsked = 3;
  const auto distance = [&](const TellingWindow& w) { return w.at > at ? w.at - at : at - w.at; };
  std::vector<TellingWindow> nearest(std::min(kAsked, telling.size()));
  std::partial_sort_copy(telling.begin(), telling.end(), nearest.begin(), nearest.end(),
                         [&](const TellingWindow& a, const TellingWindow& b) { return distance(a) < distance(b); });
  if (nearest.size() == kAsked && nearest[1].links == nearest[2].links) return nearest[1].links;
  return nearest[0].links;
}

}  // namespace

void mark_links(std::span<ResourceRecord> records, const std::function<bool(const std::string& family)>& may_tell) {
  using Setting = std::pair<std::string, std::string>;
  std::map<std::tuple<Setting, int64_t, std::string>, std::vector<size_t>> sessions;
  for (size_t i = 0; i < records.size(); ++i) {
    sessions[{{records[i].setting, records[i].tcp}, records[i].repeat, records[i].host}].push_back(i);
  }
  for (const auto& [session, windows] : sessions) {
    std::vector<TellingWindow> telling;
    for (size_t at = 0; at < windows.size(); ++at) {
      const ResourceRecord& r = records[windows[at]];
      if (r.mode != "sync" || 4 * r.parameters < kLargeBytes || !may_tell(r.described.run.family)) continue;
      telling.push_back({at, links_seen(r)});
    }
    if (telling.empty()) continue;
    for (size_t at = 0; at < windows.size(); ++at) records[windows[at]].links = nearest_links(telling, at);
  }
  std::map<Setting, std::set<LinksSeen>> states;
  for (const ResourceRecord& record : records) {
    if (record.links != LinksSeen::one) states[{record.setting, record.tcp}].insert(record.links);
  }
  for (ResourceRecord& record : records) {
    if (states[{record.setting, record.tcp}].size() < 2) record.links = LinksSeen::one;
  }
}

}  // namespace forerun
